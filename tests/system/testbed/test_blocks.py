"""Nodes with blocks of different length, of ranges apart, by each backend: the kernel's state decides."""

from __future__ import annotations

import json
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from itertools import permutations
from typing import Any

import pytest

from testbed import resources
from testbed.access.place import Node, in_parallel
from testbed.assembly import assemble
from testbed.kubernetes.joining import Stations
from testbed.overlays import registry
from testbed.overlays.daemons import component_of
from testbed.scenario.addressing import Addressing
from testbed.scenario.model import Scenario
from testbed.supplies import packages
from testbed.testbed import Testbed
from tests.waiting import until

# What makes each kind, if it is of a package; and what is before a cluster's addresses.
BACKENDS = {"vxlan": "", "host-gw": "", "vxlan-miss": "etcd-server", "bgp": "bird2"}
HERE = [name for name, package in BACKENDS.items() if not package or not list(packages.missing(package))]
# What edge's program does on a node, and once more after it was killed: plans and blocks, as JSON, in; what
# failed, out.
SETTLE = """
import json, sys
sys.path.insert(0, sys.argv[1])
from ipaddress import IPv4Network
from edge.addresses.joining import Station, parse
problems = []
for plan, blocks in json.load(sys.stdin):
    blocks = {name: IPv4Network(block) for name, block in blocks.items()}
    for again in range(2):
        problems += Station(parse(json.dumps(plan))).settle(blocks)
print(json.dumps(problems))
"""
SIZES = {"worker-01": "large", "worker-02": "small", "worker-03": "kiosk", "worker-04": "none"}
# The blocks of the first cluster; the next one's begin with 10.129, and so on.
BLOCKS = {
    "master-01": "10.128.0.0/24",
    "worker-01": "10.128.1.0/24",
    "worker-02": "10.128.32.0/27",
    "worker-03": "10.128.40.0/29",
}


def block(backend: str, node: str) -> IPv4Network:
    return IPv4Network(BLOCKS[node].replace(".128.", f".{128 + HERE.index(backend)}."))


def cluster(backend: str, late: bool = False) -> dict[str, Any]:
    start = f"10.{128 + HERE.index(backend)}"
    return {
        "master": "master-01",
        "workers": list(SIZES),
        "backend": backend,
        "flannel": {"vni": 1 + HERE.index(backend)},
        "bgp": {"connect_delay": 1} if backend == "bgp" else None,
        "pod_cidrs": [
            {"name": "large", "cidr": f"{start}.0.0/20", "mask": 24, "nodes": {"size": "large"}},
            {"name": "small", "cidr": f"{start}.32.0/24", "mask": 27, "nodes": {"size": "small"}},
            {"name": "kiosk", "cidr": f"{start}.40.0/26", "mask": 29, "nodes": {"size": "kiosk"}},
            *([{"name": "late", "cidr": f"{start}.50.0/28", "mask": 28}] if late else []),
        ],
    }


def scenario(late: bool = False) -> Scenario:
    """Return a cluster a backend; ``late``: with a range for who else has to wait."""
    nodes: dict[str, Any] = {name: {"labels": {"size": size}} for name, size in SIZES.items()}
    nodes["worker-04"]["expect"] = "unassigned"
    pods = {
        f"{backend}-{number}": {"cluster": backend, "node": f"worker-0{number}"}
        for backend in HERE
        for number in (1, 2, 3)
    }
    return Scenario.model_validate(
        {
            "name": "blocks",
            "nodes": {"master-01": {"labels": {"size": "large"}}, **nodes},
            "clusters": {backend: cluster(backend, late) for backend in HERE},
            "enforcement": "pod",
            "pods": {**pods, "vxlan-1": {**pods["vxlan-1"], "guarantee": "10M"}},
            "flows": [{"from": "vxlan-1", "to": "vxlan-3"}],
        }
    )


@pytest.fixture(scope="module")
def up() -> Iterator[Testbed]:
    testbed = assemble(scenario(), "netns", "cni")
    testbed.up()
    yield testbed
    testbed.down()


def bridges(node: Node) -> dict[str, str]:
    """Return the addresses of a node's bridges, with their prefixes."""
    return {
        one["ifname"]: f"{own['local']}/{own['prefixlen']}"
        for one in node.run(["ip", "-j", "-4", "address", "show"]).json()
        for own in one["addr_info"]
        if one["ifname"].startswith("cni-")
    }


def routes(node: Node) -> set[str]:
    """Return where a node has routes to, in all tables."""
    shown = node.run(["ip", "-j", "-4", "route", "show", "table", "all"]).json()
    return {one["dst"] for one in shown if one.get("table") != "local"}


@pytest.mark.parametrize("worker", ["worker-01", "worker-02", "worker-03"])
def test_a_node_has_its_block_of_every_cluster(up: Testbed, worker: str) -> None:
    assert bridges(up.nodes[worker]) == {
        up.addressing.bridge(backend): f"{block(backend, worker)[1]}/{block(backend, worker).prefixlen}"
        for backend in HERE
    }


@pytest.mark.parametrize("backend", HERE)
@pytest.mark.long(one_in=3)
def test_pods_have_addresses_of_their_nodes_blocks_and_of_that_length(up: Testbed, backend: str) -> None:
    for number in (1, 2, 3):
        pod = up.pods[f"{backend}-{number}"]
        (link,) = pod.run(["ip", "-j", "-4", "address", "show", "dev", "eth0"]).json()
        (own,) = [IPv4Interface(f"{one['local']}/{one['prefixlen']}") for one in link["addr_info"]]
        assert own.network == block(backend, f"worker-0{number}")
        assert str(own.ip) == pod.address


@pytest.mark.parametrize("backend", HERE)
@pytest.mark.long(one_in=3)
def test_pods_of_all_blocks_reach_each_other(up: Testbed, backend: str) -> None:
    pods = [up.pods[f"{backend}-{number}"] for number in (1, 2, 3)]
    for source, destination in permutations(pods, 2):
        # Until one is answered: what a kernel asks for first, the first packet does not wait for.
        source.run(["ping", "-c", "1", "-w", "60", "-i", "0.2", destination.address])


@pytest.mark.parametrize("backend", [name for name in HERE if name != "vxlan-miss"])
def test_nodes_have_routes_of_the_others_lengths(up: Testbed, backend: str) -> None:
    wanted = {str(block(backend, node)) for node in BLOCKS if node != "worker-03"}
    assert wanted <= routes(up.nodes["worker-03"])


def test_who_waits_for_a_block_is_in_no_network_and_in_nobodys_way(up: Testbed) -> None:
    waiting = up.nodes["worker-04"]
    assert [dst for dst in routes(waiting) if dst.startswith("10.")] == []
    links = [one["ifname"] for one in waiting.run(["ip", "-j", "link", "show"]).json()]
    assert sorted(links) == ["eth0", "lo"]
    assert up.check() == []


def test_flannels_file_names_a_network_with_all_blocks(up: Testbed) -> None:
    for backend in HERE:
        for worker in ("worker-01", "worker-03"):
            text = up.nodes[worker].run(["cat", up.addressing.subnet_file(backend)]).stdout
            said = dict(line.split("=") for line in text.splitlines())
            network = IPv4Network(said["FLANNEL_NETWORK"])
            assert all(block(backend, node).subnet_of(network) for node in BLOCKS)
            gateway = IPv4Interface(said["FLANNEL_SUBNET"])
            assert gateway.network == block(backend, worker)
            assert gateway.ip == IPv4Address(int(gateway.network.network_address) + 1)


def settle(up: Testbed, addressing: Addressing, backends: list[str]) -> list[str]:
    """Let nodes have what follows from an addressing's blocks, by plans that do not know these."""
    plans = {
        name: Stations(up.addressing, up.enforcement, name, up.nodes, packages.find, False)
        for name in backends
    }

    def on(node: str) -> list[str]:
        given = {name: addressing.blocks(name).given.items() for name in backends}
        told = [
            (plan.plan(node), {other: str(block) for other, block in given[name]})
            for name, plan in plans.items()
        ]
        argv = ["/usr/bin/python3", "-IS", "-c", SETTLE, str(resources.EDGE.parent)]
        found: list[str] = up.nodes[node].run(argv, stdin=json.dumps(told)).json()
        return found

    problems = [one for said in in_parallel(on, up.nodes) for one in said]
    return [one for one in problems if "birdc" not in one]  # who waits has a BIRD only afterwards


@pytest.mark.long(one_in=0)
def test_who_waited_joins_and_leaves_by_what_plans_say(up: Testbed) -> None:
    # Resolvers of vxlan-miss tell each other by an API what they do: tests/e2e/test_blocks.py.
    backends = [name for name in HERE if name != "vxlan-miss"]
    waiting, after = up.nodes["worker-04"], Addressing(scenario(late=True))
    later = [registry.of_cluster(after, name) for name in backends]
    daemons = [
        component_of(one, waiting, packages.find) for network in later for one in network.daemons("worker-04")
    ]
    assert settle(up, after, backends) == []
    for daemon in daemons:
        daemon.start()
    until(lambda: [text for network in later for text in network.lacking(up.nodes)] == [])
    for daemon in daemons:
        daemon.kill()
    assert settle(up, up.addressing, backends) == []
    assert up.check() == []
    assert [one["ifname"] for one in waiting.run(["ip", "-j", "link", "show"]).json()] == ["lo", "eth0"]
    assert [one for one in waiting.run(["ip", "-j", "rule", "show"]).json() if "dst" in one] == []
