"""Of what all on a node share, a pod takes its share and no more; then that pod alone suffers, and is named.

No table is filled, for that would be the whole machine's: what counts is how many entries a pod could make.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from concorde import names, rtnetlink
from concorde.node import connections, shares

from bench.studies.promise import frames
from bench.studies.promise.attacks import Attack, Scene
from tests import cases
from tests.system.plugin import test_attacks as attacks
from tests.system.plugin.conftest import Node
from tests.system.plugin.frame_kinds import link_local, people, pod_mac
from tests.system.plugin.overlapped import Overlapped
from tests.system.plugin.uplinks import HOST, ledger, on_uplink
from tests.waiting import until

HOARD = str(Path(__file__).with_name("hoard.py"))
NO_RIGHTS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
ATTACKER, NEIGHBOUR, ROUTED = "A-2", "A-1", "C-1"
OWN = {ATTACKER: "172.16.1.3", ROUTED: "172.18.1.2"}
OWN6 = "fd00:18::2"
GATEWAY = "172.16.1.1"
# Networks of the node's, in each of which nobody has an address.
NETWORKS = {
    "a bridge beside Kubernetes": "10.9.0.",
    "the underlay": "10.8.0.",
    "an overlay whose pods are all neighbours": "10.7.0.",
    "IPv6": "fd00:9::",
}
LINKS = f"""\
link add docker0 type bridge
link add port0 master docker0 type veth peer name port1
link set docker0 up
link set port0 up
link set port1 up
addr add 10.9.0.1/16 dev docker0
addr add fd00:9::1/64 dev docker0 nodad
addr add 10.8.0.1/16 dev eth0
link add flat type vxlan id 7 dev eth0 local {HOST["one"]} dstport 8475
link set flat up
addr add 10.7.0.1/16 dev flat
"""


@pytest.fixture
def node(node: Node, request: pytest.FixtureRequest) -> Node:
    """A node with two pods at a bridge and one behind a veth, but for who makes others."""
    if request.node.get_closest_marker("alone"):
        return node
    pair = Overlapped(node)
    for pod in (NEIGHBOUR, ATTACKER):
        pair.attach(pod)
    behind = people("routed")
    pair.attach_routed(ROUTED, "", behind["own"], behind["gateway"], ipv6=OWN6)
    pair.plug_in()
    node.run("ip", "-batch", "-", stdin=LINKS)
    node.run("sysctl", "-qw", "net.ipv6.conf.all.forwarding=1")
    return node


def hoard(node: Node, pod: str, to: list[str], *rights: str, **keys: Any) -> None:
    spec = json.dumps({"to": to, **keys})
    node.in_pod(pod, *rights, "/usr/bin/python3", HOARD, spec)


def neighbours(node: Node, network: str) -> set[str]:
    shown = node.show("ip", "-j", "neigh", "show", "nud", "all")
    return {entry["dst"] for entry in shown if entry["dst"].startswith(network)}


def dropped(node: Node, pod: str) -> int:
    return sum(entry["dropped"] for entry in ledger(node)["attachments"] if entry["container"] == pod)


@pytest.mark.long(one_in=6)
@pytest.mark.parametrize(
    ("pod", "where"),
    [
        *((ATTACKER, where) for where in list(NETWORKS)[:3]),
        *((ROUTED, where) for where in ("a bridge beside Kubernetes", "IPv6")),
    ],
)
def test_a_pod_takes_its_share_of_the_neighbour_table(node: Node, pod: str, where: str) -> None:
    network = NETWORKS[where]
    addresses = [f"{network}{last}" for last in range(2, 202)]
    begun = time.monotonic()
    hoard(node, pod, addresses, *NO_RIGHTS)
    made = neighbours(node, network) & set(addresses)
    refused = dropped(node, pod)
    assert len(made) >= shares.HOPS_AT_ONCE
    assert len(made) <= shares.HOPS_AT_ONCE + shares.HOPS * math.ceil(time.monotonic() - begun)
    assert refused >= len(addresses) - len(made)  # of what IPv6 says of itself some is dropped, too
    # It keeps what it has.
    kept = sorted(made)[: shares.HOPS_AT_ONCE // 2]
    hoard(node, pod, kept, *NO_RIGHTS)
    assert dropped(node, pod) - refused < len(kept) // 2
    # Others take up what they will.
    others = [f"10.9.1.{last}" for last in range(2, 34)]
    hoard(node, NEIGHBOUR, others, *NO_RIGHTS)
    assert set(others) <= neighbours(node, "10.9.1.")
    assert dropped(node, NEIGHBOUR) == 0


def test_who_has_used_up_its_share_gets_some_of_it_back_each_second(node: Node) -> None:
    hoard(node, ATTACKER, [f"10.9.0.{last}" for last in range(2, 202)])
    assert dropped(node, ATTACKER) > 0

    def made() -> bool:
        hoard(node, ATTACKER, ["10.9.1.1"])
        return "10.9.1.1" in neighbours(node, "10.9.1.")

    until(made)


TRANSLATE = """
table ip nat {
    chain out { type nat hook postrouting priority 100; ip saddr 172.16.0.0/12 oifname "eth0" masquerade; }
}
"""


def tracked(node: Node) -> int:
    return int(node.run("cat", connections.TRACKED))


def track(node: Node) -> None:
    """Have the node translate addresses, and so track connections, of which there are some at once."""
    node.run("nft", "-f", "-", stdin=TRANSLATE)
    node.run("ip", "route", "add", "10.66.0.0/16", "via", HOST["two"])
    hoard(node, NEIGHBOUR, ["10.66.0.1"])
    assert tracked(node) > 0


def chains(node: Node) -> set[str]:
    shown = node.show("nft", "-j", "list", "table", "ip", "concorde")["nftables"]
    return {entry["chain"]["name"] for entry in shown if "chain" in entry}


def test_no_rule_makes_a_node_track_connections(node: Node) -> None:
    hoard(node, ATTACKER, ["172.16.2.2"])
    assert node.call("STATUS", "", on_uplink()) == {}
    assert tracked(node) == 0
    assert "tracked" not in chains(node)


@pytest.mark.parametrize("notice", ["STATUS", "ADD", "reconcile"])
@pytest.mark.long(one_in=3)
def test_a_pod_takes_its_share_of_the_connections_that_are_tracked(node: Node, notice: str) -> None:
    track(node)
    if notice == "reconcile":
        node.run(node.plugin, "reconcile")
    else:
        node.add_pod_namespace("A-4")
        assert "code" not in node.call(notice, "A-4", on_uplink())
    assert node.run(node.plugin, "reconcile") == "nothing to repair\n"
    many = 2 * connections.AT_ONCE
    begun = time.monotonic()
    hoard(node, ATTACKER, ["10.66.0.1"], *NO_RIGHTS, ports=many)
    made = tracked(node)
    assert made >= connections.AT_ONCE
    assert made <= connections.AT_ONCE + connections.A_SECOND * math.ceil(time.monotonic() - begun) + 10
    assert dropped(node, ATTACKER) >= many - made
    # Of others no connection is refused, and of its own it keeps those it has.
    before = tracked(node)
    hoard(node, NEIGHBOUR, ["10.66.0.1"], *NO_RIGHTS, ports=100)
    assert tracked(node) >= before + 90
    assert dropped(node, NEIGHBOUR) == 0


@pytest.mark.long(one_in=0)
def test_what_is_not_tracked_is_no_connection_of_a_pods(node: Node) -> None:
    track(node)
    assert node.call("STATUS", "", on_uplink()) == {}
    raw = "chain first { type filter hook prerouting priority raw; ip saddr 172.16.0.0/12 notrack; }"
    node.run("nft", "-f", "-", stdin=f"table ip raw {{ {raw}\n }}\n")
    hoard(node, ATTACKER, ["10.66.0.1"], *NO_RIGHTS, ports=2 * connections.AT_ONCE)
    assert tracked(node) < 10  # those of the node and of what was before
    assert dropped(node, ATTACKER) < 100  # what its kernel says of its own is dropped at any time


@pytest.mark.long(one_in=0)
def test_of_connections_that_stay_a_pod_has_its_share_too_and_who_gets_its_address_begins_anew(
    node: Node,
) -> None:
    """As if it had opened them by and by."""
    track(node)
    assert node.call("STATUS", "", on_uplink()) == {}
    opening, element = "element ip concorde opening", f"cni-a . {OWN[ATTACKER]}"
    no_limit = "limit rate over 1000000/second burst 200000 packets"
    change = f"delete {opening} {{ {element} }}\nadd {opening} {{ {element} {no_limit} }}\n"
    node.run("nft", "-f", "-", stdin=change)
    hoard(node, ATTACKER, ["10.66.0.1"], *NO_RIGHTS, ports=int(1.5 * connections.MOST))
    assert 0.8 * connections.MOST <= tracked(node) <= 1.2 * connections.MOST
    assert dropped(node, ATTACKER) > 0.25 * connections.MOST

    def full() -> str:
        return node.run("nft", "list", "set", "ip", "concorde", "full")

    assert OWN[ATTACKER] in full()
    assert node.call("DEL", ATTACKER, on_uplink()) == {}
    assert OWN[ATTACKER] not in full()


FRAGMENTS = 200


def waiting(node: Node) -> int:
    """How many packets wait on the node for their rest."""
    shown = node.run("cat", "/proc/net/sockstat", "/proc/net/sockstat6")
    lines = [line.split() for line in shown.splitlines() if line.startswith("FRAG")]
    return sum(int(line[2]) for line in lines)


def put_together(node: Node) -> int:
    """How many packets the node has put together again."""
    names, values = (
        line.split() for line in node.run("cat", "/proc/net/snmp").splitlines() if line.startswith("Ip:")
    )
    return int(values[names.index("ReasmOKs")])


LOCAL, LOCAL6 = link_local(pod_mac(OWN[ATTACKER])), link_local(pod_mac(GATEWAY))


@pytest.mark.long(one_in=6)
@pytest.mark.parametrize(
    ("pod", "source", "to"),
    [
        (ATTACKER, OWN[ATTACKER], GATEWAY),
        (ATTACKER, OWN[ATTACKER], HOST["one"]),
        (ATTACKER, OWN[ATTACKER], "172.16.1.255"),
        (ATTACKER, LOCAL, LOCAL6),
        (ROUTED, OWN[ROUTED], "172.18.1.1"),
        (ROUTED, OWN6, "fd00:18::1"),
    ],
)
def test_a_pod_takes_its_share_of_what_waits_for_its_rest(node: Node, pod: str, source: str, to: str) -> None:
    if source == LOCAL:  # a bridge of this plugin's has none of its own accord
        node.run(*f"ip addr add {LOCAL6}/64 dev cni-a nodad".split())
        node.in_pod(pod, *f"ip addr add {LOCAL}/64 dev eth0 nodad".split())
    begun = time.monotonic()
    hoard(node, pod, [to], source=source, fragments=FRAGMENTS)
    kept = waiting(node)
    assert kept >= shares.FRAGMENTS_AT_ONCE
    assert kept <= shares.FRAGMENTS_AT_ONCE + shares.FRAGMENTS * math.ceil(time.monotonic() - begun)
    assert dropped(node, pod) >= FRAGMENTS - kept
    before = put_together(node)
    large = f"import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(bytes(4000), ({GATEWAY!r}, 9))"
    node.in_pod(NEIGHBOUR, "/usr/bin/python3", "-c", large)
    assert put_together(node) == before + 1


@pytest.mark.long(one_in=0)
def test_where_connections_are_tracked_all_fragments_wait_and_count(node: Node) -> None:
    to = {"source": OWN[ATTACKER], "fragments": FRAGMENTS}
    hoard(node, ATTACKER, [HOST["two"]], **to)
    assert waiting(node) == dropped(node, ATTACKER) == 0
    track(node)
    assert node.call("STATUS", "", on_uplink()) == {}
    begun = time.monotonic()
    hoard(node, ATTACKER, [HOST["two"]], **to)
    kept = waiting(node)
    assert kept >= shares.FRAGMENTS_AT_ONCE
    assert kept <= shares.FRAGMENTS_AT_ONCE + shares.FRAGMENTS * math.ceil(time.monotonic() - begun)
    assert dropped(node, ATTACKER) == FRAGMENTS - kept


# Reports of IGMP that so many groups are listened to, a hundred in each (RFC 3376, section 4.2).
JOIN = """
import socket, struct
sender = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_IGMP)
for third in range(6):
    report = struct.pack("!BBHHH", 0x22, 0, 0, 0, 100)
    report += b"".join(struct.pack("!BBHBBBB", 4, 0, 0, 239, 7, third, last) for last in range(100))
    total = sum(struct.unpack(f"!{len(report) // 2}H", report))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    sender.sendto(report[:2] + struct.pack("!H", ~total & 0xFFFF) + report[4:], ("224.0.0.22", 0))
"""


def test_a_pod_takes_its_share_of_the_groups_that_a_bridge_keeps(node: Node) -> None:
    """Of one that another plugin made: this one's do not look into any."""
    node.run("ip", "link", "set", "dev", "cni-a", "type", "bridge", "mcast_snooping", "1")
    node.in_pod(ATTACKER, "/usr/bin/python3", "-c", JOIN)
    port = names.host_veth("cluster-a", ATTACKER, "eth0")
    shown = node.show("bridge", "-j", "mdb", "show")
    groups = [entry["grp"] for bridge in shown for entry in bridge["mdb"] if entry["port"] == port]
    assert len(groups) == rtnetlink.MOST_GROUPS


def to_many_addresses() -> Iterator[bytes]:
    for number in range(4000):
        yield frames.ipv4(OWN[ATTACKER], f"10.9.{number >> 8}.{number & 255}", frames.udp(9, b""))


def to_many_ports() -> Iterator[bytes]:
    for port in range(1, 60_000):
        yield frames.ipv4(OWN[ATTACKER], "10.66.0.1", frames.udp(port, b""))


def beginnings() -> Iterator[bytes]:
    """First fragments of one packet for each of many protocols: another's rest is never theirs."""
    for protocol in range(256):
        for fragment in (0x2000, 0x2100):
            yield frames.ipv4(OWN[ATTACKER], GATEWAY, bytes(256), fragment, protocol)


@pytest.mark.long(one_in=0)
@pytest.mark.alone
@pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")
@pytest.mark.parametrize("packets", [to_many_addresses, to_many_ports, beginnings])
def test_a_promise_holds_and_who_is_new_gets_through_while_a_pod_would_fill_a_table(
    node: Node, packets: Callable[[], Iterator[bytes]]
) -> None:
    pair = Overlapped(node, capacity=attacks.LINK)
    pair.attach(NEIGHBOUR, f"{attacks.PROMISE:.0f}")
    pair.attach(ATTACKER)
    pair.plug_in()
    node.run("ip", "-batch", "-", stdin=LINKS)
    track(node)
    assert node.call("STATUS", "", on_uplink(capacity=attacks.LINK)) == {}

    def made(_: Scene) -> list[bytes]:
        mac = pod_mac(OWN[ATTACKER])
        return [frames.ethernet(pod_mac(GATEWAY), mac, frames.IPV4, packet) for packet in packets()]

    attack = Attack("a table", made)

    def judge(factor: int) -> None:
        with attacks.everybody_else(pair), attacks.victim(pair) as seconds:
            next(seconds)
            with attacks.flood(pair, attack):
                next(seconds)
                found = []
                for last in range(2, 2 + attacks.SECONDS * factor):
                    found.append(next(seconds))
                    new = f"10.9.200.{last}"
                    hoard(node, NEIGHBOUR, [new])
                    assert new in neighbours(node, new)
        assert min(found) >= attacks.LEAST, found

    cases.with_more_samples(judge)
    assert dropped(node, ATTACKER) > 1000
    assert dropped(node, NEIGHBOUR) == 0
