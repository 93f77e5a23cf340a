"""Nodes with blocks of different length, of ranges apart, by each backend: the kernel's state decides."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from itertools import permutations
from typing import Any

import pytest

from testbed.access.place import Node
from testbed.assembly import assemble
from testbed.scenario.model import Scenario
from testbed.supplies import packages
from testbed.testbed import Testbed

# What makes each kind, if it is of a package; and what is before a cluster's addresses.
BACKENDS = {"vxlan": "", "host-gw": "", "vxlan-miss": "etcd-server", "bgp": "bird2"}
HERE = [name for name, package in BACKENDS.items() if not package or not list(packages.missing(package))]
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


def cluster(backend: str) -> dict[str, Any]:
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
        ],
    }


def scenario() -> Scenario:
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
            "clusters": {backend: cluster(backend) for backend in HERE},
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
def test_pods_have_addresses_of_their_nodes_blocks_and_of_that_length(up: Testbed, backend: str) -> None:
    for number in (1, 2, 3):
        pod = up.pods[f"{backend}-{number}"]
        (link,) = pod.run(["ip", "-j", "-4", "address", "show", "dev", "eth0"]).json()
        (own,) = [IPv4Interface(f"{one['local']}/{one['prefixlen']}") for one in link["addr_info"]]
        assert own.network == block(backend, f"worker-0{number}")
        assert str(own.ip) == pod.address


@pytest.mark.parametrize("backend", HERE)
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
