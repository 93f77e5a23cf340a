"""Random calls of two clusters on one node, some at once, some killed: the sums hold, and all is repaired.

CONCORDE_CHURN_STEPS says how many calls, CONCORDE_CHURN_SEED where to begin; 10,000 take some ten minutes.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.system.plugin.conftest import Node

CHURN = str(Path(__file__).with_name("churn.py"))
STEPS = int(os.environ.get("CONCORDE_CHURN_STEPS", "300"))
SEED = int(os.environ.get("CONCORDE_CHURN_SEED", "1"))


def test_ledger_classes_and_map_are_one_whatever_was_killed(node: Node) -> None:
    node.run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0-peer")
    node.add_pod_namespace(*(f"{cluster}-{number}" for number in range(12) for cluster in "ab"))
    work = {"plugin": str(node.plugin), "seed": SEED, "steps": STEPS, "at_once": 6, "longest": 0.08}
    counted = json.loads(node.run("/usr/bin/python3", CHURN, stdin=json.dumps(work)))
    # So the test is about something: there were kills, refusals, and what remained.
    print(counted)  # noqa: T201 - shown when it fails, or with -s
    for outcome in ("ADD done", "ADD killed", "ADD error 105", "DEL done", "DEL killed", "attached"):
        assert counted.get(outcome, 0) > 0, counted
