"""What a pod says by ICMP changes nobody's routes but those to itself, by the kernels' own tables."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

import pytest

from bench.studies.promise.frames import icmp, ipv4
from tests.system.plugin.conftest import Node
from tests.system.plugin.frame_kinds import link_local
from tests.system.plugin.overlapped import Overlapped
from tests.system.plugin.uplinks import HOST

GATEWAY, OWN, NEIGHBOUR, REMOTE = "172.16.1.1", "172.16.1.3", "172.16.1.2", "172.16.2.2"
SEND = """
import json, socket, sys
spec = json.loads(sys.argv[1])
six = ":" in spec["to"]
family, protocol = (socket.AF_INET6, socket.IPPROTO_ICMPV6) if six else (socket.AF_INET, socket.IPPROTO_ICMP)
sender = socket.socket(family, socket.SOCK_RAW, protocol)
to = (spec["to"], 0, 0, socket.if_nametoindex("eth0")) if six else (spec["to"], 0)
for _ in range(3):
    sender.sendto(bytes.fromhex(spec["message"]), to)
"""


@pytest.fixture
def pair(node: Node) -> Overlapped:
    """A-1 and, as the attacker, A-2 on a node; A-3 on the other."""
    made = Overlapped(node)
    made.attach("A-1", "100M")
    made.attach("A-2")
    made.plug_in()
    return made


def complain(node: Node, to: str, about: str, kind: int = 3, code: int = 4, via: str = OWN) -> None:
    """Send an error to somebody three times, about an echo reply from that one to `about`."""
    if ":" in to:
        ends = socket.inet_pton(socket.AF_INET6, to) + socket.inet_pton(socket.AF_INET6, about)
        reply = struct.pack("!IHBB", 6 << 28, 64, socket.IPPROTO_ICMPV6, 64) + ends + b"\x81" + bytes(63)
        message = icmp(kind, code, struct.pack("!I", 1280) + reply)  # the kernel sums ICMPv6 itself
    else:
        rest = struct.pack("!HH", 0, 100) if kind == 3 else socket.inet_aton(via)
        message = icmp(kind, code, rest + ipv4(to, about, bytes(64), protocol=socket.IPPROTO_ICMP))
    spec = json.dumps({"to": to, "message": message.hex()})
    node.in_pod("A-2", "/usr/bin/python3", "-c", SEND, spec)


def route(node: Node, to: str, pod: str = "") -> tuple[Any, Any]:
    """Gateway and MTU of the route to an address, as somebody's kernel would take it now."""
    (found,) = node.show("ip", "-j", "route", "get", to, pod=pod)
    mtus = [metric["mtu"] for metric in found.get("metrics", ()) if "mtu" in metric]
    return found.get("gateway"), mtus


def dropped(node: Node) -> int:
    rows = json.loads(node.run("/usr/bin/python3", "-IS", node.plugin, "ledger", "--json"))["attachments"]
    return sum(int(row["dropped"]) for row in rows if row["address"] == OWN)


@pytest.mark.parametrize(
    ("to", "about", "pod"),
    [
        (GATEWAY, HOST["two"], ""),
        (HOST["one"], HOST["two"], ""),
        (HOST["one"], REMOTE, ""),
        (GATEWAY, NEIGHBOUR, ""),
        (NEIGHBOUR, REMOTE, "A-1"),
        (NEIGHBOUR, HOST["two"], "A-1"),
    ],
)
@pytest.mark.long(one_in=4)
def test_an_error_about_anothers_packet_changes_no_route(
    pair: Overlapped, to: str, about: str, pod: str
) -> None:
    before = route(pair.node, about, pod)
    complain(pair.node, to, about)
    assert route(pair.node, about, pod) == before
    assert before[1] == []
    assert dropped(pair.node) == 3


def test_nor_do_redirects(pair: Overlapped) -> None:
    pair.node.in_pod("A-1", "sh", "-c", "echo 1 >/proc/sys/net/ipv4/conf/eth0/accept_redirects")
    before = route(pair.node, REMOTE, "A-1")
    complain(pair.node, NEIGHBOUR, REMOTE, kind=5, code=1)
    assert route(pair.node, REMOTE, "A-1") == before
    assert dropped(pair.node) == 3


def test_the_other_nodes_routes_stay_too(pair: Overlapped) -> None:
    complain(pair.node, HOST["two"], HOST["one"])
    assert route(pair.far, HOST["one"])[1] == []


def test_nor_do_errors_of_ipv6(pair: Overlapped) -> None:
    node = pair.node
    victim, own = link_local("0a:58:ac:10:01:02"), link_local("0a:58:ac:10:01:03")
    for pod, address in (("A-1", victim), ("A-2", own)):
        node.in_pod(pod, *f"ip addr add {address}/64 dev eth0 nodad".split())
    node.in_pod("A-1", "ip", "-6", "route", "add", "fd00::/64", "dev", "eth0")
    before = route(node, "fd00::2", "A-1")
    complain(node, victim, "fd00::2", kind=2, code=0)
    assert route(node, "fd00::2", "A-1") == before
    assert dropped(node) == 3
    complain(node, victim, own, kind=2, code=0)
    assert dropped(node) == 3


def test_a_pod_may_say_what_it_cannot_take(pair: Overlapped) -> None:
    complain(pair.node, GATEWAY, OWN)
    assert route(pair.node, OWN)[1] == [552]  # net.ipv4.route.min_pmtu: it gets no larger ones, as it asked
    assert dropped(pair.node) == 0


def test_who_sends_where_nobody_listens_is_told_so(pair: Overlapped) -> None:
    ask = (
        "import socket; asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
        f"asking.connect(('{OWN}', 9)); asking.send(b'x'); asking.settimeout(60);"
        "import contextlib\nwith contextlib.suppress(ConnectionRefusedError): asking.recv(1)"
    )
    pair.node.run("/usr/bin/python3", "-c", ask)
    pair.node.in_pod("A-1", "/usr/bin/python3", "-c", ask)
    assert dropped(pair.node) == 0
