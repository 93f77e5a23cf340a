"""What datapaths are measured on: one cluster of this machine's own nodes, with pods and nothing else.

Each of its workers has pods, and links have any speed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from bench.studies import ground as one_kernel
from testbed.providers import Together
from testbed.scenario import Scenario
from testbed.testbed import Testbed

CLUSTER, MASTER = "a", "node-0"
UNDERLAY = IPv4Network("10.200.0.0/16")
PODS = IPv4Network("10.128.0.0/9")
NODE_PREFIX = 24
FIRST_ADDRESS = 11
OTHER_ADDRESS = 20_000  # after the first: a node's when it has changed


def pod(node: str, number: int = 0) -> str:
    """Return the name of a node's pod."""
    return f"{node}-pod" if number == 0 else f"{node}-pod-{number}"


def workers(scenario: Scenario) -> list[str]:
    """Return the workers; the last of them is the one that joins, leaves and changes."""
    return scenario.clusters[CLUSTER].workers


def of_nodes(datapath: Mapping[str, Any], nodes: int, pods: int = 1) -> Scenario:
    """Return the scenario of a cluster of so many nodes, three at least, the master among them.

    ``datapath`` is what the cluster says of its backend. Each worker has so many pods. All nodes have
    addresses of their own, so that one more moves no other. Raises ValueError for settings that are none.
    """
    names = [MASTER, *(f"node-{number}" for number in range(1, nodes))]
    first = int(UNDERLAY.network_address) + FIRST_ADDRESS
    return Scenario.model_validate(
        {
            "name": f"nodes-{nodes}",
            "underlay": {"cidr": str(UNDERLAY)},
            "nodes": {
                name: {"address": str(IPv4Address(first + number))} for number, name in enumerate(names)
            },
            "clusters": {
                CLUSTER: {
                    "master": names[0],
                    "workers": names[1:],
                    "pod_cidr": str(PODS),
                    "node_prefix": NODE_PREFIX,
                    **datapath,
                }
            },
            "enforcement": "none",
            "pods": {
                pod(name, number): {"cluster": CLUSTER, "node": name}
                for name in names[1:]
                for number in range(pods)
            },
            "flows": [{"from": pod(names[1]), "to": pod(names[2])}],
        }
    )


def without(scenario: Scenario, node: str) -> Scenario:
    """Return the scenario as it is for all others when a worker is not in the cluster."""
    cluster = scenario.clusters[CLUSTER]
    left = [worker for worker in cluster.workers if worker != node]
    pods = {name: one for name, one in scenario.pods.items() if one.node != node}
    changed = cluster.model_copy(update={"workers": left})
    return scenario.model_copy(update={"clusters": {CLUSTER: changed}, "pods": pods})


def moved(scenario: Scenario, node: str) -> Scenario:
    """Return the scenario in which a node has another address on the underlay."""
    one = scenario.nodes[node]
    assert one.address is not None, "every node here has an address"
    changed = one.model_copy(update={"address": one.address + OTHER_ADDRESS})
    return scenario.model_copy(update={"nodes": {**scenario.nodes, node: changed}})


@contextmanager
def ground(scenario: Scenario) -> Iterator[tuple[Testbed, Together]]:
    """Bring a testbed up, and take it down at the end of the block.

    Raises LookupError for a backend that this machine cannot run, RuntimeError when it does not come up.
    """
    with one_kernel.ground(scenario) as testbed:
        assert isinstance(testbed.provider, Together), "these nodes have one kernel"
        yield testbed, testbed.provider


def network_of(testbed: Testbed, together: Together, pod: str) -> str:
    """Return the path of a pod's network, where all are seen."""
    return together.inside(testbed.networks[pod])
