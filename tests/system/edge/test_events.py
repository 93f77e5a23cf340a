"""Whatever happens to leases, store and resolver: the kernel's entries come right again by themselves.

CONCORDE_OVERLAY_EVENTS says how many events to let happen.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from testbed import resources
from testbed.providers.netns.sandbox import Sandbox
from tests import cases
from tests.system.edge import events
from tests.system.edge.conftest import give_vtep

EVENTS = cases.count("CONCORDE_OVERLAY_EVENTS", 60, 20_000)
GENERATIONS = [("miss", "miss", "ignore"), ("ahead", "miss", "answer"), ("ahead", "ahead", "ignore")]


@pytest.mark.long(one_in=3, counted=True)
@pytest.mark.parametrize(("l2", "l3", "refresh"), GENERATIONS)
def test_entries_are_what_the_store_justifies(
    l2: str,
    l3: str,
    refresh: str,
    box: Sandbox,
    etcd: str,
    tmp_path: Path,
) -> None:
    box.add_nodes(["here"])
    node = box.node("here")
    give_vtep(node, l2, l3)
    wishes = {
        "l2": l2, "l3": l3, "refresh": refresh, "seed": cases.seed(),
        "events": max(1, EVENTS // len(GENERATIONS)),
        "directory": str(tmp_path), "etcd": etcd, "edge": str(resources.EDGE), "buffer": 4096,
    }  # fmt: skip
    shown = node.run([sys.executable, events.__file__], stdin=json.dumps(wishes), timeout=3000)
    told = json.loads(shown.stdout)
    assert told["wrong"] == "", told["log"][-2000:]
    assert told["slowest_s"] <= events.QUIET_SECONDS
    assert told["alive"]
    assert "Traceback" not in told["log"]
    # What is written ahead is not asked for, so nothing can be unheard.
    if told["counted"].get("deafened") and "miss" in (l2, l3):
        assert "the kernel said more than could be heard" in told["log"]
    assert sum(told["counted"].values()) == wishes["events"]
