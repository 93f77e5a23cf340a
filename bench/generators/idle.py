"""What is asked on a path on which nothing else is under way, and which files hold the times."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bench.generators import exchanger_of
from bench.recording.records import slug
from testbed.scenario import Requests, Scenario

# Before the traffic and after it, in the recording's raw files.
BEFORE, AFTER = "idle", "idle-after"
SECONDS = 1
# Exchanges a second: fewer would not tell a median, more would not leave the path idle.
FEWEST, MOST = 50, 1000


def sample(requests: Requests) -> Requests:
    """Return a second of requests by themselves: as they are, at about their rate."""
    rate = min(MOST, max(FEWEST, requests.rate))
    return requests.model_copy(update={"rate": rate, "start": 0.0, "duration": SECONDS})


def files(scenario: Scenario, requests: Iterable[Requests], directory: Path, role: str) -> dict[str, Path]:
    """Return for each requests' label the file with its exchanges (``sender``), or its pings (``echo``)."""
    taken: set[str] = set()
    return {
        one.label: directory
        / f"{slug(one.label, taken)}.{role}.{exchanger_of(scenario, one).suffix_of(role)}"
        for one in requests
    }
