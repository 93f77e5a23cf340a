"""All requests of a testbed made, and how many each pod has seen."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

from bench.generators import exchanger_of
from bench.measurement import transfers
from bench.measurement.plan import plan
from bench.recording.records import receiver_slug
from testbed.scenario import Requests
from testbed.testbed import Testbed


def seen(testbed: Testbed, requested: Sequence[Requests], directory: Path) -> dict[str, dict[str, int]]:
    """Make requests, see that each was answered, and return how many each pod has seen, by their labels."""
    done = transfers.run(plan(testbed, requested, 0.1), directory, lambda _seconds, _rates: None)
    found = {}
    for requests in requested:
        transfer, tool = done.transfers[requests.label], exchanger_of(testbed.scenario, requests)
        assert transfer.error is None
        sent = tool.read_exchanges(directory / tool.file_name(transfer.slug, "sender"), requests.count)
        assert Counter(one.status for one in sent) == {"answered": requests.count}, requests.label
        found[requests.label] = {
            pod: json.loads((directory / f"{receiver_slug(transfer.slug, pod)}.receiver.json").read_text())[
                "requests"
            ]
            for pod in testbed.scenario.receivers_of(requests)
        }
        assert sum(found[requests.label].values()) == requests.count
    return found


def plausibility(counted: Collection[dict[str, int]]) -> float:
    """Return how likely counts are that are at least as far from even ones, by chi-squared."""
    from scipy.stats import chi2  # only here: it takes a second, wherever tests are collected

    squares = [(count - even(one)) ** 2 / even(one) for one in counted for count in one.values()]
    return float(chi2.sf(sum(squares), sum(len(one) - 1 for one in counted)))


def even(counts: dict[str, int]) -> float:
    """Return an even share of what was counted."""
    return sum(counts.values()) / len(counts)
