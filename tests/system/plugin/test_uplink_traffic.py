"""Nobody steps out of line: the uplink's classes count whose bytes are whose, whatever a sender tries."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import cases
from tests.system.plugin.ask import ASK
from tests.system.plugin.conftest import Node
from tests.system.plugin.uplinks import HOST, NEIGHBOUR, SUMS, Pair, on_uplink
from tests.waiting import PATIENCE

SEND = str(Path(__file__).with_name("send.py"))
LISTEN = (
    "import signal, socket; s = socket.create_server(('', 5001)); print('ready', flush=True); signal.pause()"
)
BYTES = 100 * 1000  # what send.py sends, headers left out
NOISE = 3000  # ARP and the like
FIRST, SECOND, DEFAULT, CONTROL = "c0de:10", "c0de:11", "c0de:fffe", "c0de:fffd"
# What A-1 sends beyond its promise's purposes, and what A-2 sends, which has none.
EFFORT, WITHOUT = "c0de:4010", "c0de:4012"
REMOTE = "172.16.2.77"  # a pod's address on the other node; whether it exists is no matter to this one


@pytest.fixture
def pair(node: Node) -> Iterator[Pair]:
    """Pods A-1 and B-1, of two clusters, with guarantees, and A-2 without."""
    made = Pair(node)
    node.add_pod_namespace("A-1", "A-2", "B-1")
    for pod, configuration in (
        ("A-1", on_uplink("100M")),
        ("B-1", on_uplink("200M", cluster="b")),
        ("A-2", on_uplink()),
    ):
        answer = node.call("ADD", pod, configuration)
        assert "code" not in answer, answer
    made.plug_in()
    yield made
    assert made.qdisc()["options"]["direct_packets_stat"] == 0


def send(node: Node, pod: str = "", **spec: Any) -> None:
    argument = json.dumps({"to": REMOTE, "port": 9, **spec})
    if pod:
        node.in_pod(pod, "/usr/bin/python3", SEND, argument)
    else:
        node.run("/usr/bin/python3", SEND, argument)


def only(sent: dict[str, int], name: str) -> bool:
    """Whether all of it, and hardly more, went by one class."""
    others = [amount for other, amount in sent.items() if other != name]
    return BYTES < sent[name] < 1.3 * BYTES and max(others) < NOISE


@pytest.mark.long(one_in=7)
@pytest.mark.parametrize(("pod", "name"), [("A-1", FIRST), ("B-1", SECOND), ("A-2", WITHOUT)])
@pytest.mark.parametrize(
    "disguise",
    [{}, {"priority": 0xC0DE0011}, {"priority": 0xC0DE0010}, {"priority": 0xC0DE0000}, {"mark": 0xC0DE0011}],
    ids=["plain", "priority of B-1", "priority of A-1", "priority of the qdisc", "mark"],
)
def test_a_pod_sends_by_its_own_class(pair: Pair, pod: str, name: str, disguise: dict[str, Any]) -> None:
    assert only(pair.sent(lambda: send(pair.node, pod, **disguise)), name)


def test_a_jumbo_frame_is_no_larger_than_a_turn_of_best_effort(node: Node) -> None:
    pair = Pair(node)
    for side in ("one", "two"):
        pair.on(side, "ip", "-batch", "-", stdin="link set eth0 mtu 9000\nlink set flannel.1 mtu 8950\n")
    node.add_pod_namespace("A-1")
    assert "code" not in node.call("ADD", "A-1", on_uplink(capacity="10M", mtu=8950))
    pair.plug_in()
    assert pair.sent(lambda: send(node, "A-1", size=8900, count=10))[EFFORT] > 89_000


def test_a_pod_behind_nat_sends_by_its_own_class(pair: Pair) -> None:
    nat = (
        "table ip nat { chain postrouting { type nat hook postrouting priority 100;\n"
        "ip saddr 172.16.0.0/12 masquerade; }\n }"
    )
    pair.node.run("nft", "-f", "-", stdin=nat)
    assert only(pair.sent(lambda: send(pair.node, "A-1", to=NEIGHBOUR)), FIRST)


@pytest.mark.parametrize("disguise", [{"source": "172.16.1.2"}, {"source": "172.16.1.99"}])
@pytest.mark.long(one_in=2)
def test_what_a_pod_sends_from_another_address_is_dropped_at_its_port(
    pair: Pair, disguise: dict[str, Any]
) -> None:
    pair.node.in_pod("A-2", "ip", "addr", "add", f"{disguise['source']}/32", "dev", "eth0")
    gateway = "0a:58:ac:10:01:01"  # or its ARP request would be dropped first
    pair.node.in_pod("A-2", *f"ip neigh replace 172.16.1.1 lladdr {gateway} dev eth0".split())
    sent = pair.sent(lambda: send(pair.node, "A-2", **disguise))
    assert sum(sent.values()) < NOISE


def test_a_pod_cannot_claim_anothers_address_by_arp(pair: Pair) -> None:
    send(pair.node, "A-1")  # so the node knows A-1
    (before,) = pair.node.show("ip", "-j", "neigh", "show", "172.16.1.2")
    pair.node.in_pod("A-2", "ip", "addr", "add", "172.16.1.2/24", "dev", "eth0")
    pair.node.in_pod("A-2", "ip", "neigh", "flush", "dev", "eth0")
    send(pair.node, "A-2", source="172.16.1.2", count=1)
    (after,) = pair.node.show("ip", "-j", "neigh", "show", "172.16.1.2")
    assert before["lladdr"] == after["lladdr"] == "0a:58:ac:10:01:02"


def test_a_container_on_another_bridge_gets_nothing_by_a_pods_address(pair: Pair) -> None:
    pair.node.run(
        "ip",
        "-batch",
        "-",
        stdin="netns add C\nlink add docker0 type bridge\naddr add 10.1.0.1/24 dev docker0\n"
        "link set docker0 up\nlink add c0 master docker0 type veth peer name eth0 netns C\nlink set c0 up\n",
    )
    addresses = "addr add 10.1.0.2/24 dev eth0\naddr add 172.17.1.2/32 dev eth0\nlink set eth0 up\n"
    pair.node.in_pod("C", "ip", "link", "set", "lo", "up")
    pair.node.run(
        "nsenter",
        "--net=/run/netns/C",
        "ip",
        "-batch",
        "-",
        stdin=addresses + "route add default via 10.1.0.1\n",
    )
    assert only(pair.sent(lambda: send(pair.node, "C", source="10.1.0.2")), DEFAULT)
    assert sum(pair.sent(lambda: send(pair.node, "C", source="172.17.1.2")).values()) < NOISE
    # Not from a bridge at all, the packets reach the node's routing, but by no way of that pod's.
    pair.node.run("nft", "flush", "chain", "bridge", "concorde", "prerouting")
    assert only(pair.sent(lambda: send(pair.node, "C", source="172.17.1.2")), DEFAULT)


def test_a_pod_that_removes_its_own_shaping_stays_in_its_class(pair: Pair) -> None:
    node = pair.node
    node.add_pod_namespace("A-3")
    node.call("ADD", "A-3", on_uplink("50M", "60M"))
    node.in_pod("A-3", "tc", "qdisc", "delete", "dev", "eth0", "root")
    assert only(pair.sent(lambda: send(node, "A-3")), "c0de:13")
    assert "ceil 63032Kbit" in node.run("tc", "class", "show", "dev", "eth0", "classid", "c0de:13")


@pytest.mark.parametrize(
    "spec",
    [
        {"priority": 0xC0DE0010, "to": NEIGHBOUR},
        {"priority": 0xC0DE0010, "to": NEIGHBOUR, "port": 8472},
        {"priority": 0xC0DE0000, "to": NEIGHBOUR},
        {"priority": 0xC0DE0010, "to": HOST["two"], "port": 8472},
        {"priority": 0xC0DE0010},
        {"priority": 0xC0DE0010, "to": "fd00::2"},
        {"forged": "172.16.1.2"},
        {"forged": "172.16.1.2", "to": NEIGHBOUR},
    ],
    ids=[
        "priority",
        "to VXLAN's port",
        "past all classes",
        "to the VTEP",
        "to a pod",
        "IPv6",
        "raw",
        "raw out",
    ],
)
@pytest.mark.long(one_in=4)
def test_a_process_of_the_node_sends_by_no_pods_class(pair: Pair, spec: dict[str, Any]) -> None:
    assert only(pair.sent(lambda: send(pair.node, **spec)), DEFAULT)


@pytest.mark.parametrize(
    "spec",
    [
        {"kind": "echo", "size": 1380, "count": 1000},
        {"kind": "echo", "size": 4000, "count": 400},  # the answers are fragments
        {"kind": "echo", "size": 8, "count": 6000},
        {"kind": "time", "count": 6000},
        {"kind": "ack", "port": 9, "count": 6000},  # resets
        {"kind": "syn", "port": 9, "count": 6000},  # resets
        {"kind": "syn", "port": 5001, "count": 6000},  # one listens there
        {"kind": "old", "port": 5001, "count": 6000},  # acknowledged once more
    ],
    ids=lambda spec: " ".join(map(str, spec.values())),
)
@pytest.mark.long(one_in=4)
def test_what_anybody_makes_a_pods_kernel_say_is_best_effort(pair: Pair, spec: dict[str, Any]) -> None:
    """But for a hundredth of the class, so that one who asks now and then is answered by it."""
    pair.node.in_pod("A-1", "sysctl", "-qw", "net.ipv4.icmp_ratelimit=0")
    enter = "nsenter", "--net=/run/netns/A-1"
    with pair.node.running(*enter, "/usr/bin/python3", "-c", LISTEN) as listening:
        assert listening.stdout is not None
        assert listening.stdout.readline() == "ready\n"
        asked = json.dumps({"to": "172.16.1.2", **spec})
        begun = time.monotonic()
        sent = pair.sent(lambda: pair.on("two", *ASK, asked))
        took = time.monotonic() - begun
    # The limit begins with a second's worth and two packets. All is answered, the rest of it by best effort.
    assert 0 < sent[FIRST] < 0.01 * 103.5e6 / 8 * (took + 1) + 10_000
    assert sent[FIRST] + sent[EFFORT] > 5 * BYTES
    assert sent[DEFAULT] < NOISE


# Fills a connection to one that does not read yet, closes it, and says how much it had taken.
FILL_AND_CLOSE = """
import socket, struct, sys
asking = socket.create_connection((sys.argv[1], 5001))
asking.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, struct.pack("=I", int(sys.argv[2])))
asking.setblocking(False)
taken = 0
try:
    while True:
        taken += asking.send(bytes(65536))
except BlockingIOError:
    print(taken)
"""
READ_WHEN_TOLD = """
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
listening = socket.create_server((sys.argv[1], 5001), family=family)
print("listening", flush=True)
reading, _ = listening.accept()
sys.stdin.readline()
print(sum(map(len, iter(lambda: reading.recv(65536), b""))))
"""


@pytest.mark.parametrize("to", [HOST["two"], "fd00::2"])
@pytest.mark.parametrize("priority", [0xC0DE0010, 0xC0DE0000])
@pytest.mark.long(one_in=4)
def test_nor_what_a_closed_connection_still_holds(pair: Pair, to: str, priority: int) -> None:
    """It has no owner any more, and the priority that it was given."""
    held: dict[str, int] = {}

    def leave_it_behind() -> None:
        argv = pair.node.argv("nsenter", "--net=/run/netns/two", "/usr/bin/python3", "-c", READ_WHEN_TOLD, to)
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
            assert reader.stdout is not None
            assert reader.stdout.readline() == "listening\n"
            held["taken"] = int(pair.node.run("/usr/bin/python3", "-c", FILL_AND_CLOSE, to, str(priority)))
            told, _ = reader.communicate("read\n", timeout=PATIENCE)
        assert int(told) == held["taken"]

    sent = pair.sent(leave_it_behind)
    assert sent[DEFAULT] > held["taken"] > 10 * NOISE
    assert sent[FIRST] < NOISE


def test_the_nodes_control_traffic_has_a_class_of_its_own(pair: Pair) -> None:
    pair.node.run("ip", "neigh", "flush", "dev", "eth0", "nud", "reachable")
    asking = pair.sent(lambda: send(pair.node, to="192.168.9.77", count=1))
    assert asking[CONTROL] > 0
    assert asking[FIRST] == asking[SECOND] == 0
    connecting = pair.sent(lambda: send(pair.node, to=NEIGHBOUR, port=6443, tcp=50))
    assert connecting[CONTROL] >= 50 * 74
    assert connecting[DEFAULT] < NOISE
    by_pod = pair.sent(lambda: send(pair.node, "A-1", to=NEIGHBOUR, port=6443, tcp=50))
    assert by_pod[FIRST] >= 50 * 74
    assert by_pod[CONTROL] < NOISE


def test_all_of_it_together_adds_up(pair: Pair) -> None:
    def everything() -> None:
        for pod in ("A-1", "B-1", "A-2", ""):
            send(pair.node, pod, priority=0xC0DE0010)

    sent = pair.sent(everything)
    assert min(sent[name] for name in (FIRST, SECOND, WITHOUT, DEFAULT)) > BYTES


@pytest.mark.alone
@pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")
def test_a_guarantee_is_kept_on_a_full_uplink_and_idle_capacity_is_used(node: Node) -> None:
    """The judge is the class's own counter; A-1 is promised 40 of 100 Mbit/s, the node wants all of it."""
    pair = Pair(node)
    node.add_pod_namespace("A-1")
    node.call("ADD", "A-1", on_uplink("40M", capacity="100M"))
    pair.plug_in()
    for port in ("5201", "5202"):
        pair.on("two", "iperf3", "--server", "--daemon", "--port", port)
    flow = ["iperf3", "--client", HOST["two"], "--time", "90", "--port"]
    with node.running("nsenter", "--net=/run/netns/A-1", *flow, "5201"):
        sent_by(pair, FIRST)

        def alone(factor: int) -> None:
            assert rates(pair, factor)[FIRST] > 80e6

        cases.with_more_samples(alone)
        with node.running(*flow, "5202", "--parallel", "8"):
            sent_by(pair, DEFAULT)

            def beside(factor: int) -> None:
                found = rates(pair, 3 * factor)
                # On the uplink 40 Mbit/s of the pod's frames are 41.4; the host has the rest, less ARP.
                assert found[FIRST] > 0.97 * 41.4e6
                assert found[DEFAULT] > 40e6
                assert sum(found.values()) < 1.03 * 100e6

            cases.with_more_samples(beside)


def sent_by(pair: Pair, name: str) -> None:
    """Wait until a class has sent what its burst and a connection's start take, 2 MB."""
    begin = pair.classes()[name]
    while pair.classes()[name] < begin + 2e6:
        pass


def rates(pair: Pair, seconds: float) -> dict[str, float]:
    """What each class sends in that time (bits per second), by its own counter."""
    start, before = time.monotonic(), pair.classes()
    time.sleep(seconds)
    after, took = pair.classes(), time.monotonic() - start
    return {name: (after[name] - before[name]) * 8 / took for name in after if name not in SUMS}
