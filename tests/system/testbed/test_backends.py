"""Clusters of different backends on the same nodes, beside the same by hand: the kernel's state decides."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from testbed.access.place import Node, Place
from testbed.assembly import assemble
from testbed.overlays.daemons import wait_until_joined
from testbed.providers.netns.sandbox import Sandbox
from testbed.scenario.model import Scenario
from testbed.supplies import packages
from testbed.testbed import Testbed
from tests.waiting import until

NODES = ("master-01", "worker-01", "worker-02")
BACKENDS = {"v": "vxlan", "h": "host-gw", "b": "bgp", "c": "bgp"}
# What somebody would type on worker-01 for these four clusters.
BY_HAND = """\
link add eth0 type veth peer name far
link set lo up
link set far up
link set eth0 up
address add 192.168.56.12/24 broadcast + dev eth0
link add flannel.1 address 0e:01:c0:a8:38:0c mtu 1450 type vxlan id 1 dev eth0 local 192.168.56.12 \
dstport 8472 nolearning
link set flannel.1 addrgenmode none
link set flannel.1 up
address add 172.16.1.0/32 dev flannel.1
neighbour add 172.16.0.0 lladdr 0e:01:c0:a8:38:0b dev flannel.1 nud permanent
neighbour add 172.16.2.0 lladdr 0e:01:c0:a8:38:0d dev flannel.1 nud permanent
route add 172.16.0.0/24 via 172.16.0.0 dev flannel.1 onlink
route add 172.16.2.0/24 via 172.16.2.0 dev flannel.1 onlink
route add 172.17.0.0/24 via 192.168.56.11 dev eth0
route add 172.17.2.0/24 via 192.168.56.13 dev eth0
rule add to 172.20.0.0/16 lookup 101 priority 101
route add 172.20.0.0/24 via 192.168.56.11 dev eth0 table 101 proto bird metric 32
route add 172.20.2.0/24 via 192.168.56.13 dev eth0 table 101 proto bird metric 32
rule add to 172.21.0.0/16 lookup 102 priority 102
route add 172.21.0.0/24 via 192.168.56.11 dev eth0 table 102 proto bird metric 32
route add 172.21.2.0/24 via 192.168.56.13 dev eth0 table 102 proto bird metric 32
"""
FORWARDING_BY_HAND = """\
fdb add 0e:01:c0:a8:38:0b dev flannel.1 dst 192.168.56.11 self permanent
fdb add 0e:01:c0:a8:38:0d dev flannel.1 dst 192.168.56.13 self permanent
"""
TABLES = ("main", "101", "102")


def scenario() -> Scenario:
    networks = {"v": "172.16.0.0/16", "h": "172.17.0.0/16", "b": "172.20.0.0/16", "c": "172.21.0.0/16"}
    clusters = {
        name: {
            "master": "master-01",
            "workers": ["worker-01", "worker-02"],
            "pod_cidr": networks[name],
            "backend": backend,
            "bgp": {"connect_delay": 1, "graceful_restart": False},
        }
        for name, backend in BACKENDS.items()
    }
    pods = {
        f"{cluster}-{number}": {"cluster": cluster, "node": f"worker-0{number}"}
        for cluster in clusters
        for number in (1, 2)
    }
    pods["b-1"]["guarantee"] = "10M"
    flows = [{"from": "v-1", "to": "v-2"}]
    nodes: dict[str, None] = dict.fromkeys(NODES)
    return Scenario.model_validate(
        {
            "name": "backends",
            "underlay": {"rate": "1G"},
            "nodes": nodes,
            "clusters": clusters,
            "enforcement": "node",
            "pods": pods,
            "flows": flows,
        }
    )


@pytest.fixture(scope="module")
def up() -> Iterator[Testbed]:
    if lacking := list(packages.missing("bird2")):
        pytest.skip(lacking[0])
    testbed = assemble(scenario(), "netns", "cni")
    testbed.up()
    yield testbed
    testbed.down()


def state(node: Node) -> dict[str, Any]:
    """Return what a node has, as the kernel shows it, but for the bridges of the pods."""
    links = node.run(["ip", "-d", "-j", "link", "show"]).json()
    vteps = {one["ifname"]: one for one in links if one.get("linkinfo", {}).get("info_kind") == "vxlan"}
    return {
        "vteps": {
            name: (one["address"], one["mtu"], one["flags"], one["linkinfo"]) for name, one in vteps.items()
        },
        "addresses": [
            (one["ifname"], own["local"], own["prefixlen"])
            for one in node.run(["ip", "-j", "-4", "address", "show"]).json()
            for own in one["addr_info"]
            if not one["ifname"].startswith("cni-")
        ],
        "routes": {table: routes(node, table) for table in TABLES},
        "rules": node.run(["ip", "-j", "rule", "show"]).json(),
        "neighbours": sorted(
            (one["dst"], one["dev"], one["lladdr"], *one["state"])
            for one in node.run(["ip", "-j", "neighbour", "show", "nud", "permanent"]).json()
        ),
        "forwarding": sorted(
            (one["mac"], one["ifname"], one["dst"], one["state"], *one["flags"])
            for one in node.run(["bridge", "-j", "fdb", "show"]).json()
            if "dst" in one
        ),
    }


def routes(node: Node, table: str) -> list[dict[str, Any]]:
    shown = node.run(["ip", "-j", "route", "show", "table", table], check=False)
    found = [one for one in (shown.json() if shown.status == 0 else []) if not one["dev"].startswith("cni-")]
    return sorted(found, key=lambda one: str(one["dst"]))


def test_a_node_has_what_somebody_would_have_made_by_hand(up: Testbed) -> None:
    box = Sandbox.start("tests.by-hand")
    try:
        box.add_nodes(["worker-01"])
        by_hand = box.node("worker-01")
        by_hand.run(["ip", "-batch", "-"], stdin=BY_HAND)
        by_hand.run(["bridge", "-batch", "-"], stdin=FORWARDING_BY_HAND)
        assert state(up.nodes["worker-01"]) == state(by_hand)
    finally:
        box.stop()


@pytest.mark.parametrize(("cluster", "mtu"), [("v", 1450), ("h", 1500), ("b", 1500), ("c", 1500)])
@pytest.mark.long(one_in=3)
def test_a_pod_reaches_another_in_one_packet_of_its_mtu(up: Testbed, cluster: str, mtu: int) -> None:
    sender, receiver = up.pods[f"{cluster}-1"], up.pods[f"{cluster}-2"]
    (link,) = sender.run(["ip", "-j", "link", "show", "dev", "eth0"]).json()
    assert link["mtu"] == mtu
    assert answers(sender, receiver.address, mtu - 28) == mtu - 28


def answers(sender: Place, address: str, size: int) -> int:
    """Return how large an ICMP echo's data is that comes back whole, unfragmented; 0 for none."""
    program = (
        "import socket, struct, sys\n"
        "address, size = sys.argv[1], int(sys.argv[2])\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP); s.settimeout(60)\n"
        "s.setsockopt(socket.IPPROTO_IP, 10, 2)\n"  # IP_MTU_DISCOVER, IP_PMTUDISC_DO
        "data = struct.pack('!BBHHH', 8, 0, 0, 7, 1) + bytes(size)\n"
        "total = sum(struct.unpack(f'!{len(data) // 2}H', data)); total = (total >> 16) + (total & 0xffff)\n"
        "data = data[:2] + struct.pack('!H', ~(total + (total >> 16)) & 0xffff) + data[4:]\n"
        "s.sendto(data, (address, 0))\n"
        "try: print(len(s.recv(70000)) - 28)\n"
        "except TimeoutError: print(0)\n"
    )
    return int(sender.run(["/usr/bin/python3", "-c", program, address, str(size)]).stdout)


def test_sessions_are_control_traffic_and_packets_have_their_pods_class(up: Testbed) -> None:
    node = up.nodes["worker-01"]
    shown = node.run(["tc", "class", "show", "dev", "eth0"]).stdout
    (promise,) = re.findall(r"^class htb (c0de:\w\w) parent c0de:1 ", shown, re.MULTILINE)
    before = counted(node, promise)
    answers(up.pods["b-1"], up.pods["b-2"].address, 1400)
    assert counted(node, promise) == before + 1400 + 28 + 14  # nothing is put around it
    marking = node.run(["nft", "list", "chain", "ip", "concorde", "postrouting"]).stdout
    ports = [line for line in marking.splitlines() if "179" in line]
    assert len(ports) == 2  # from them, and to them
    assert all(" 1790, " in line and "meta priority set c0de:fffd" in line for line in ports)


def counted(node: Node, name: str) -> int:
    """Return the bytes that a class of the node's uplink has sent."""
    shown = node.run(["tc", "-s", "class", "show", "dev", "eth0", "classid", name]).stdout
    return int(shown.partition("Sent ")[2].split()[0])


@contextmanager
def changed(node: Node, change: list[str], back: list[str]) -> Iterator[None]:
    node.run(change)
    try:
        yield
    finally:
        node.run(back)


def test_a_check_finds_a_route_and_a_forwarding_entry_that_are_gone(up: Testbed) -> None:
    assert up.check() == []
    node, route = up.nodes["worker-01"], ["172.17.2.0/24", "via", "192.168.56.13", "dev", "eth0"]
    entry = ["0e:01:c0:a8:38:0d", "dev", "flannel.1", "dst", "192.168.56.13", "self", "permanent"]
    with (
        changed(node, ["ip", "route", "del", *route], ["ip", "route", "add", *route]),
        changed(node, ["bridge", "fdb", "del", *entry[:3]], ["bridge", "fdb", "add", *entry]),
    ):
        assert up.check() == [
            "the network of cluster v lacks, on worker-01: "
            "0e:01:c0:a8:38:0d behind 192.168.56.13 on flannel.1",
            "the network of cluster h lacks, on worker-01: "
            "a route to 172.17.2.0/24 via 192.168.56.13 on eth0",
        ]
    assert up.check() == []


@pytest.mark.long(one_in=0)
def test_a_bird_that_is_killed_is_found_and_takes_only_its_own_clusters_routes_along(up: Testbed) -> None:
    node, other = up.nodes["worker-02"], up.nodes["worker-01"]
    before = routes(other, "102"), routes(node, "102")
    (bird,) = [
        one
        for one in (up._joining.components if up._joining else [])
        if (one.name, one.place.name) == ("BIRD of cluster b", "worker-02")
    ]
    bird.kill()
    gone = [one for one in routes(other, "101") if one["dst"] != "172.20.2.0/24"]
    wait_until_joined(lambda: [] if routes(other, "101") == gone else ["worker-01: the same routes"], [])
    assert (routes(other, "102"), routes(node, "102")) == before
    faults = up.check()
    assert faults[0].startswith("BIRD of cluster b on worker-02 ended with 137")
    assert "the network of cluster b lacks, on worker-01: a route to 172.20.2.0/24" in faults[-1]
    assert not [fault for fault in faults if "cluster c" in fault or "cluster h" in fault]
    assert answers(up.pods["c-1"], up.pods["c-2"].address, 100) == 100
    bird.start()  # by itself nothing is, and the testbed is others', too
    until(lambda: up.check() == [])
