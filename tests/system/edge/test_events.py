"""Whatever happens to leases, store and resolver: the kernel's entries come right again by themselves.

CONCORDE_OVERLAY_EVENTS says how many events to let happen.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed import resources
from testbed.providers.netns.sandbox import Sandbox
from tests import cases
from tests.system.edge import events
from tests.system.edge.conftest import give_vtep

EVENTS = cases.count("CONCORDE_OVERLAY_EVENTS", 60, 20_000)
GENERATIONS = [("miss", "miss", "ignore"), ("ahead", "miss", "answer"), ("ahead", "ahead", "ignore")]


GENERATION = ("l2", "l3", "refresh")
QUIET_SECONDS = 2.0

Told = dict[str, Any]


@pytest.fixture
def happen(box: Sandbox, etcd: str, tmp_path: Path) -> Callable[..., Told]:
    """Return what lets so many events happen to an overlay, and returns what was told of them."""

    def happened(l2: str, l3: str, refresh: str, seed: int, count: int) -> Told:
        name = f"here-{seed}"
        box.add_nodes([name])
        node = box.node(name)
        give_vtep(node, l2, l3)
        directory = tmp_path / name
        directory.mkdir()
        wishes = {
            "l2": l2, "l3": l3, "refresh": refresh, "seed": seed, "events": count,
            "directory": str(directory), "etcd": etcd, "edge": str(resources.EDGE), "buffer": 4096,
        }  # fmt: skip
        shown = node.run([sys.executable, events.__file__], stdin=json.dumps(wishes), timeout=3000)
        told: Told = json.loads(shown.stdout)
        assert told["wrong"] == "", told["log"][-2000:]
        return told

    return happened


@pytest.mark.long(one_in=3, counted=True)
@pytest.mark.parametrize(GENERATION, GENERATIONS)
def test_entries_are_what_the_store_justifies(
    l2: str, l3: str, refresh: str, happen: Callable[..., Told]
) -> None:
    count = max(1, EVENTS // len(GENERATIONS))
    told = happen(l2, l3, refresh, cases.seed(), count)
    assert told["alive"]
    assert "Traceback" not in told["log"]
    # What is written ahead is not asked for, so nothing can be unheard; nor what is known already.
    assert told["unheard"] or told["counted"].get("deafened", 0) < 10 or "miss" not in (l2, l3)
    assert sum(told["counted"].values()) == count


@pytest.mark.alone
def test_they_are_so_two_seconds_after_the_last_event(happen: Callable[..., Told]) -> None:
    generation = GENERATIONS[cases.seed() % len(GENERATIONS)]

    def judge(factor: int) -> None:
        assert happen(*generation, cases.seed() + factor, 40 * factor)["slowest_s"] <= QUIET_SECONDS

    cases.with_more_samples(judge)
