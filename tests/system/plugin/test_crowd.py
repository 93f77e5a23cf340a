"""Many pods of two clusters at once on one node, with invocations killed at random moments.

CONCORDE_CROWD_PODS says how many of each cluster.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import cases
from tests.system.plugin.conftest import Node, promising

CROWD = str(Path(__file__).with_name("crowd.py"))
COUNT = cases.count("CONCORDE_CROWD_PODS", 30, 100)
PODS = [f"{cluster}-{number}" for number in range(COUNT) for cluster in "AB"]
AT_ONCE = 40


def network_of(pod: str, **keys: Any) -> dict[str, Any]:
    cluster = pod[0].lower()
    return promising("10M", name=f"cluster-{cluster}", third=16 if cluster == "a" else 17, **keys)


def crowd(node: Node, verb: str, pods: list[str], killed: float, seed: int) -> dict[str, str | None]:
    work = {
        "plugin": str(node.plugin),
        "verb": verb,
        "pods": [(pod, network_of(pod)) for pod in pods],
        "killed": killed,
        "longest": 0.6,
        "at_once": AT_ONCE,
        "seed": seed,
    }
    answers: dict[str, str | None] = json.loads(node.run("/usr/bin/python3", CROWD, stdin=json.dumps(work)))
    return answers


def gc(node: Node, valid: set[str]) -> None:
    for cluster in "AB":
        attachments = [{"containerID": pod, "ifname": "eth0"} for pod in valid if pod[0] == cluster]
        assert node.call("GC", "", network_of(cluster, **{"cni.dev/valid-attachments": attachments})) == {}


def held(node: Node) -> set[str]:
    return {pod for cluster in "ab" for pod, _ in node.leases(f"cluster-{cluster}")}


@pytest.mark.long
def test_no_address_is_given_twice_and_nothing_leaks(node: Node) -> None:
    node.add_pod_namespace(*PODS)
    added = crowd(node, "ADD", PODS, killed=0.3, seed=cases.seed())
    alive = {pod: address for pod, address in added.items() if address is not None}
    assert len(alive) < len(PODS)  # some were killed
    assert len(alive) > len(PODS) // 2
    assert len(set(alive.values())) == len(alive)

    gc(node, set(alive))
    assert held(node) == set(alive)
    assert len(node.veths()) == len(alive)
    for pod in list(alive)[:3]:
        assert f"inet {alive[pod]} " in node.in_pod(pod, "ip", "addr", "show", "dev", "eth0")

    deleted = crowd(node, "DEL", sorted(alive), killed=0.3, seed=cases.seed() + 1)
    gone = {pod for pod, answer in deleted.items() if answer is not None}
    assert gone < set(alive)  # some were killed
    assert not held(node) & gone
    gc(node, set())
    assert held(node) == set()
    assert node.veths() == set()
