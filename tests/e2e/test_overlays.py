"""Overlays made by a real flanneld, beside those the testbed makes itself; only where one is given."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.access.components import Component
from testbed.access.place import Node
from testbed.assembly import assemble
from testbed.orchestrators.own import KubernetesOrchestrator
from testbed.scenario import Scenario, load
from testbed.supplies import binaries
from testbed.testbed import ENTRIES, Testbed
from tests.e2e.conftest import PATIENCE_SECONDS, SCENARIOS, brought_up, until

# Cluster b's port is none that flanneld would choose itself.
OVERRIDES = ["enforcement=node", "underlay.rate=20G", "clusters.b.flannel.port=8473"]
MEBIBYTE = 2**20


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return load(SCENARIOS / "contmec.yaml", OVERRIDES, scale=0.05)


@pytest.fixture(scope="module")
def pair(scenario: Scenario) -> Iterator[Testbed]:
    """The overlapped pair, joined by flannelds."""
    if not binaries.find().flanneld:
        pytest.skip(f"no flanneld is kept beside Kubernetes: {binaries.GET} --flannel FILE")
    with brought_up(scenario) as testbed:
        yield testbed


@pytest.fixture
def entries(pair: Testbed, scenario: Scenario) -> Iterator[Testbed]:
    """The same scenario, with the testbed's own entries."""
    del pair  # where that cannot be, this need not be
    testbed = assemble(scenario, "netns", "cni")
    testbed.up()
    yield testbed
    testbed.down()


def vteps(node: Node) -> dict[str, dict[str, Any]]:
    return {
        one["ifname"]: one for one in node.run(["ip", "-d", "-j", "link", "show", "type", "vxlan"]).json()
    }


def overlays(testbed: Testbed) -> dict[str, dict[str, Any]]:
    """Return what each node's kernel has of each overlay; instead of VTEPs' MACs, whose they are."""
    whose = {vtep["address"]: node for node in testbed.nodes for vtep in vteps(testbed.nodes[node]).values()}
    return {
        f"{name} {vtep}": overlay(node, link, whose)
        for name, node in testbed.nodes.items()
        for vtep, link in vteps(node).items()
    }


def overlay(node: Node, link: dict[str, Any], whose: dict[str, str]) -> dict[str, Any]:
    vtep = link["ifname"]

    def shown(*command: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = node.run([*command, "show", "dev", vtep]).json()
        return found

    (addresses,) = shown("ip", "-j", "-4", "address")
    for entry in (
        *(neighbours := shown("ip", "-j", "neighbour")),
        *(forwarding := shown("bridge", "-j", "fdb")),
    ):
        key = "lladdr" if "lladdr" in entry else "mac"
        entry[key] = whose[entry[key]]
    return {
        "link": [link["mtu"], link["flags"], link["qdisc"], link["linkinfo"]],
        "addresses": [(one["local"], one["prefixlen"]) for one in addresses["addr_info"]],
        "routes": in_order(shown("ip", "-j", "route")),
        "neighbours": in_order(neighbours),
        "forwarding": in_order(forwarding),
    }


def in_order(shown: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(one, sort_keys=True) for one in shown)


def flannelds(pair: Testbed) -> dict[tuple[str, str], Component]:
    """Return them by cluster and node."""
    assert isinstance(pair.orchestrator, KubernetesOrchestrator)
    found = [one for one in pair.orchestrator.components if one.name.startswith("flanneld of cluster ")]
    return {(one.name.rpartition(" ")[2], one.place.name): one for one in found}


def test_the_kernel_has_what_it_has_with_the_testbeds_own_entries(pair: Testbed, entries: Testbed) -> None:
    assert (pair.overlay, entries.overlay) == (f"flanneld {binaries.find().flanneld}", ENTRIES)
    assert overlays(pair) == overlays(entries)
    assert len(overlays(pair)) == 6
    assert all(len(one["routes"]) == len(one["forwarding"]) == 2 for one in overlays(pair).values())


def test_plugins_are_told_what_they_are_told_with_the_testbeds_own_entries(
    pair: Testbed, entries: Testbed
) -> None:
    def told(testbed: Testbed) -> list[str]:
        show = ["sh", "-c", "ls /run/flannel; cat /run/flannel/*"]
        return [node.run(show).stdout for node in testbed.nodes.values()]

    assert told(pair) == told(entries)
    assert "FLANNEL_MTU=1450" in told(pair)[-1]


def test_every_cluster_has_one_on_each_of_its_nodes_with_its_own_vni_and_port(pair: Testbed) -> None:
    assert set(flannelds(pair)) == {
        (name, node) for name, cluster in pair.scenario.clusters.items() for node in cluster.nodes
    }
    for node, expected in {
        "worker-02": {"flannel.1": (1, 8472), "flannel.2": (2, 8473)},
        "master-02": {"flannel.2": (2, 8473)},
    }.items():
        made = {name: link["linkinfo"]["info_data"] for name, link in vteps(pair.nodes[node]).items()}
        assert {name: (data["id"], data["port"]) for name, data in made.items()} == expected


@pytest.mark.parametrize(
    ("source", "destination", "vtep"), [("A-1", "A-4", "flannel.1"), ("B-1", "B-2", "flannel.2")]
)
def test_bytes_cross_between_pods_on_different_workers(
    pair: Testbed, tmp_path: Path, source: str, destination: str, vtep: str
) -> None:
    def received() -> int:
        node = pair.nodes[pair.scenario.node_of(destination)]
        (link,) = node.run(["ip", "-j", "-s", "link", "show", "dev", vtep]).json()
        count: int = link["stats64"]["rx"]["bytes"]
        return count

    before, places = received(), pair.pods
    listen = ["iperf3", "--server", "--one-off", "--forceflush"]
    server = places[destination].start(listen, stdout=tmp_path / "out", stderr=tmp_path / "err")
    until(lambda: "listening" in (tmp_path / "out").read_text())
    send = ["iperf3", "--client", places[destination].address, "--time", "1", "--bitrate", "20M", "--json"]
    sent = places[source].run(send).json()["end"]
    assert server.wait(PATIENCE_SECONDS) == 0
    assert sent["sum_received"]["bytes"] > MEBIBYTE
    assert received() - before > MEBIBYTE


def test_it_has_the_rights_it_needs_and_no_others(pair: Testbed) -> None:
    client = next(one for one in pair.clients if one.cluster == "b")
    mine = [client.kubectl, "--kubeconfig=/run/kubernetes/b/flanneld.conf", "auth", "can-i"]

    def may(*what: str) -> bool:
        return client.place.run([*mine, *what], check=False).stdout.strip() == "yes"

    assert all(may(verb, "nodes") for verb in ("get", "list", "watch"))
    assert may("patch", "nodes", "--subresource=status")
    assert not any(may(*what) for what in (("patch", "nodes"), ("get", "pods"), ("list", "secrets")))


def test_one_that_ends_is_a_fault_and_what_it_made_stays(pair: Testbed) -> None:
    one = flannelds(pair)["a", "worker-01"]
    one.kill()
    (fault,) = pair.check()
    assert fault.startswith("flanneld of cluster a on worker-01 ended with 137: ")
    pair.pods["A-1"].run(["ping", "-c", "1", "-W", "5", pair.pods["A-4"].address])
    one.start()
    assert pair.check() == []


def test_an_entry_that_is_lost_is_a_fault(pair: Testbed) -> None:
    node, route = (
        pair.nodes["worker-02"],
        ["172.17.1.0/24", "via", "172.17.1.0", "dev", "flannel.2", "onlink"],
    )
    node.run(["ip", "route", "delete", *route])
    assert pair.check() == [
        "the overlay of cluster b lacks, on worker-02: a route to 172.17.1.0/24 via 172.17.1.0"
    ]
    node.run(["ip", "route", "add", *route])
    assert pair.check() == []
