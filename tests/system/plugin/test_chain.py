"""Behind another plugin: shaping only, and that plugin's interface stays that plugin's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.system.plugin.again import elements
from tests.system.plugin.chains import TWO_WAYS, Chain, Outside
from tests.system.plugin.conftest import REFERENCE, Node, promising
from tests.system.plugin.runtimes import CACHE
from tests.system.plugin.uplinks import ledger

pytestmark = pytest.mark.skipif(
    not all((REFERENCE / name).exists() for name in ("ptp", "bridge", "bandwidth", "host-local")),
    reason=f"the reference plugins are not in {REFERENCE} (Debian: containernetworking-plugins)",
)

PTP: dict[str, Any] = {
    "cniVersion": "1.0.0",
    "name": "cluster-a",
    "type": "ptp",
    "mtu": 1450,
    "ipam": {
        "type": "host-local",
        "subnet": "172.16.1.0/24",
        "dataDir": "/run/host-local",
        "routes": [{"dst": "0.0.0.0/0"}],
    },
}


def chained(previous: dict[str, Any], guarantee: str = "1G") -> dict[str, Any]:
    return promising(guarantee, cniVersion="1.0.0", subnet=None, prevResult=previous)


def attach(node: Node) -> dict[str, Any]:
    node.add_pod_namespace("A-1")
    return node.call("ADD", "A-1", PTP, plugin=REFERENCE / "ptp")


def qdisc(node: Node) -> str:
    (shown,) = node.show("tc", "-j", "qdisc", "show", "dev", "eth0", pod="A-1")
    kind: str = shown["kind"]
    return kind


def routes(node: Node) -> list[dict[str, Any]]:
    """But for their flags: the kernel looks at a link's carrier when it comes to it."""
    return [{**route, "flags": None} for route in node.show("ip", "-j", "route", pod="A-1")]


def test_the_interface_is_shaped_and_the_result_passed_on(node: Node) -> None:
    previous = attach(node)
    assert node.call("ADD", "A-1", chained(previous)) == previous
    assert "rate 1Gbit ceil 1Gbit" in node.in_pod("A-1", "tc", "class", "show", "dev", "eth0")
    assert node.call("CHECK", "A-1", chained(previous)) == {}
    assert node.call("CHECK", "A-1", PTP | {"prevResult": previous}, plugin=REFERENCE / "ptp") == {}
    node.in_pod("A-1", "tc", "qdisc", "delete", "dev", "eth0", "root")
    assert node.call("CHECK", "A-1", chained(previous))["code"] == 104


def test_del_undoes_the_shaping_and_nothing_else(node: Node) -> None:
    previous = attach(node)
    node.call("ADD", "A-1", chained(previous))
    before = routes(node)
    for _ in range(2):
        assert node.call("DEL", "A-1", chained(previous)) == {}
        assert qdisc(node) == "noqueue"
    assert routes(node) == before
    assert node.leases("cluster-a") == []
    assert node.call("DEL", "A-1", PTP | {"prevResult": previous}, plugin=REFERENCE / "ptp") == {}
    assert node.veths() == set()


def test_del_gives_a_slow_pod_s_interface_its_large_packets_back(node: Node) -> None:
    previous = attach(node)
    sizes = []
    for command in ("ADD", "DEL"):
        node.call(command, "A-1", chained(previous, "20M"))
        (shown,) = node.show("ip", "-d", "-j", "link", "show", "dev", "eth0", pod="A-1")
        sizes.append(shown["gso_max_size"])
    assert sizes == [5000, 65536]


def test_del_succeeds_when_the_interface_or_the_namespace_is_gone(node: Node) -> None:
    previous = attach(node)
    node.call("ADD", "A-1", chained(previous))
    node.in_pod("A-1", "ip", "link", "delete", "dev", "eth0")
    assert node.call("DEL", "A-1", chained(previous)) == {}
    node.run("ip", "netns", "delete", "A-1")
    assert node.call("DEL", "A-1", chained(previous)) == {}
    assert node.leases("cluster-a") == []


def test_anothers_qdisc_is_an_error_and_stays(node: Node) -> None:
    previous = attach(node)
    node.in_pod("A-1", "tc", "qdisc", "add", "dev", "eth0", "root", "handle", "1:", "htb", "default", "1")
    assert node.call("ADD", "A-1", chained(previous))["code"] == 101
    assert qdisc(node) == "htb"
    assert node.leases("cluster-a") == []


def test_gc_drops_the_leases_of_pods_that_are_gone(node: Node) -> None:
    previous = attach(node)
    node.call("ADD", "A-1", chained(previous))
    node.run("ip", "netns", "delete", "A-1")
    network = {**promising(subnet=None), "cni.dev/valid-attachments": []}
    assert node.call("GC", "", network) == {}
    assert node.leases("cluster-a") == []


ORDERS = {
    "before": ["portmap", "bandwidth", "concorde"],
    "between": ["portmap", "concorde", "bandwidth"],
    "first": ["concorde", "portmap", "bandwidth"],
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("main", ["bridge", "ptp"])
@pytest.mark.parametrize("enforcement", ["none", "node"])
@pytest.mark.long(one_in=6)
def test_beside_bandwidth_the_guard_is_where_packets_enter_and_no_redirect_passes_it(
    node: Node, enforcement: str, main: str, order: str
) -> None:
    """`bandwidth` lists its ifb last, and redirects there what the pod sends, before any hook of netdev."""
    outside = Outside(node)
    node.add_pod_namespace("A-1")
    keys = {"uplink": "eth0", "capacity": "10G"} if enforcement == "node" else {}
    chain = Chain(node, [main, *ORDERS[order]], enforcement=enforcement, **keys)
    offered = chain.offer(limited=TWO_WAYS, guarantee="10M" if enforcement == "node" else "")
    result = chain.add("A-1", offered=offered)
    assert result["interfaces"][-1]["name"].startswith("bwp"), result
    address = result["ips"][0]["address"].partition("/")[0]
    outside.send("A-1", 7)
    outside.send("A-1", 5, source="10.66.0.77")
    assert outside.senders() == {address: 7}
    (entry,) = ledger(node)["attachments"]
    assert entry["dropped"] >= 5
    assert chain.check("A-1") == []
    before = told(node)
    chain.keep("A-1")
    node.run(node.plugin, "rebuild", "--cache", CACHE)
    assert told(node) == before
    assert node.run(node.plugin, "reconcile") == "nothing to repair\n"
    outside.send("A-1", 7)
    outside.send("A-1", 5, source="10.66.0.77")
    assert outside.senders() == {address: 14}
    assert chain.delete("A-1") == chain.delete("A-1") == []
    assert ledger(node)["attachments"] == []
    ruleset = node.show("nft", "-j", "list", "ruleset")["nftables"]
    ends = [end["name"] for end in result["interfaces"] if "sandbox" not in end]
    assert [elements(ruleset, end, address) for end in ends] == [[]] * len(ends)


def told(node: Node) -> Any:
    """The ledger but for what is counted, and the guard's elements."""
    found = ledger(node)
    for entry in found["attachments"]:
        del entry["dropped"]
    frames = [
        node.run("nft", "list", "set", family, "concorde", "frames")
        for family in ("bridge", "inet")
        if f"table {family} concorde" in node.run("nft", "list", "tables")
    ]
    return found, frames


def test_arp_in_anothers_name_does_not_pass_by_a_redirect(node: Node) -> None:
    Outside(node)
    node.add_pod_namespace("A-1")
    chain = Chain(node, ["ptp", "bandwidth", "concorde"])
    result = chain.add("A-1", offered=chain.offer(limited=TWO_WAYS))
    end = result["interfaces"][0]["name"]
    node.run("sh", "-c", f"echo 1 > /proc/sys/net/ipv4/conf/{end}/arp_accept")
    for pod_address in ("10.66.0.77", "10.66.0.2"):
        node.in_pod("A-1", "/usr/bin/python3", "-c", ANNOUNCE, pod_address)
    known = {entry["dst"] for entry in node.show("ip", "-j", "neigh", "show", "dev", end)}
    assert known & {"10.66.0.77", "10.66.0.2"} == {"10.66.0.2"}


# An ARP request of the whole world's to itself, as who has an address announces it.
ANNOUNCE = """\
import socket, sys
address, link = socket.inet_aton(sys.argv[1]), socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
link.bind(("eth0", 0))
own = link.getsockname()[4]
head = bytes.fromhex("ffffffffffff") + own + bytes.fromhex("08060001080006040001")
link.send(head + own + address + bytes(6) + address)
"""


def test_a_pod_made_again_in_the_same_place_keeps_its_class(node: Node) -> None:
    """The DEL of the first comes with the path that is the second one's by now."""
    node.add_pod_namespace("A-1")
    chain = Chain(node, ["ptp", "concorde"], enforcement="pod")
    chain.add("first", netns="A-1", offered=chain.offer(guarantee="10M"))
    node.run("ip", "netns", "delete", "A-1")
    node.add_pod_namespace("A-1")
    chain.add("second", netns="A-1", offered=chain.offer(guarantee="20M"))
    shaped = node.in_pod("A-1", "tc", "class", "show", "dev", "eth0")
    assert "rate 20Mbit" in shaped
    for _ in range(2):
        answer = chain.call("DEL", chain.plugins[1], "first", chain.results["first"], "A-1")
        assert answer == {}
        assert node.in_pod("A-1", "tc", "class", "show", "dev", "eth0") == shaped
    assert chain.check("second", "A-1") == []
    assert [entry["container"] for entry in ledger(node)["attachments"]] == ["second"]


def test_without_a_ledger_a_name_that_another_pod_has_by_now_is_left_alone(node: Node) -> None:
    node.add_pod_namespace("A-1")
    chain = Chain(node, ["ptp", "concorde"])
    result = chain.add("A-1", offered=chain.offer())
    frames = ("nft", "list", "set", "netdev", "concorde", "frames")
    before = node.run(*frames)
    assert result["interfaces"][0]["name"] in before
    node.run("rm", "-r", "/run/concorde/node")
    stranger = json.loads(json.dumps(result).replace(result["interfaces"][1]["mac"], "02:00:00:00:00:77"))
    configuration = chain.configuration(chain.plugins[1], "A-0", stranger)
    assert node.call("DEL", "A-0", configuration, netns="") == {}
    assert node.run(*frames) == before
    assert node.call("DEL", "A-1", chain.configuration(chain.plugins[1], "A-1", result), netns="") == {}
    assert result["interfaces"][0]["name"] not in node.run(*frames)
