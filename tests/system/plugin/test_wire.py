"""What a promise is worth on a wire, of which a frame takes more than its own bytes, whatever others send.

The wire is emulated behind the uplink, where offloaded packets have become frames, as behind a card: what
arrives at the other node passes a token bucket that counts as Ethernet does. So the wire has no room for more
than it carries, and what a node sends too fast is dropped there, whoever it was promised to.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from tests import cases
from tests.system.plugin import test_attacks
from tests.system.plugin.conftest import Node
from tests.system.plugin.floods import SCENE
from tests.system.plugin.overlapped import Overlapped
from tests.system.plugin.uplinks import HOST, gained

LINK, PROMISE = 20_000_000, 8_000_000  # bits per second: of the wire, and of layer 2
# Bytes: a full frame of a pod's within VXLAN's headers, and of the node's; their TCP payload with timestamps.
FRAME, PAYLOAD = 1464, 1398
NODES_FRAME, NODES_PAYLOAD = 1514, 1448
OVERHEAD, SMALLEST = 24, 84  # bytes of the wire: more than each frame's own, and at least
LEAST = 0.95 * PROMISE * PAYLOAD / FRAME
HEADERS, VXLAN = 42, 50  # bytes: Ethernet 14, IPv4 20, UDP 8; and what a pod's frame grows by
SMALLEST_FRAME = 42
SIZES = (SMALLEST_FRAME, 60, 100, 342, 742, 1342, 1514)
# The socket's buffer is no limit: what waits is the queue's to say (SO_SNDBUFFORCE, asm-generic/socket.h).
SEND = """\
import socket, sys
s = socket.socket(type=socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, 32, 1 << 24)
s.connect((sys.argv[1], 9))
payload = bytes(int(sys.argv[2]))
print("sending", flush=True)
while True:
    try:
        s.send(payload)
    except OSError:
        pass
"""

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed"),
]


class Wired(Overlapped):
    """Two nodes, with a wire between them that carries so many bits per second."""

    def __init__(self, node: Node, rate: int, **keys: Any) -> None:
        super().__init__(node, capacity=str(rate), **keys)
        node.run("ip", "link", "set", "eth0", "gso_max_segs", "1")
        self.on("two", "ip", "-batch", "-", stdin="link add wire type ifb\nlink set wire up\n")
        self.on("two", "tc", "-batch", "-", stdin=bucket(rate))

    def carried(self) -> dict[str, int]:
        """What the wire has counted."""
        (found,) = json.loads(self.on("two", "tc", "-j", "-s", "qdisc", "show", "dev", "wire", "root"))
        return {key: found[key] for key in ("bytes", "packets", "drops")}

    def arrived(self, pod: str) -> int:
        """How many packets a pod of the far node has got."""
        (link,) = json.loads(self.far.in_pod(pod, "ip", "-j", "-s", "link", "show", "eth0"))
        return int(link["stats64"]["rx"]["packets"])


def bucket(rate: int) -> str:
    """What arrives has to pass first, in `tc -batch` text."""
    count = f"overhead {OVERHEAD} mpu {SMALLEST}"
    redirect = "action mirred egress redirect dev wire"
    return (
        f"qdisc add dev wire root tbf rate {rate}bit burst 16kb limit 64kb {count}\n"
        "qdisc add dev eth0 ingress\n"
        f"filter add dev eth0 parent ffff: protocol all u32 match u32 0 0 {redirect}\n"
    )


@contextmanager
def singles(pair: Overlapped, size: int, pod: str = "") -> Iterator[None]:
    """Let the node, or a pod, send frames of a size (bytes) one by one, as fast as it can."""
    enter = ["nsenter", f"--net=/run/netns/{pod}"] if pod else []
    send = ["nice", "-n", "10", "/usr/bin/python3", "-c", SEND, SCENE.remote if pod else HOST["two"]]
    argv = pair.node.argv(*enter, *send, str(size - HEADERS))
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as sender:
        assert sender.stdout is not None
        assert sender.stdout.readline() == "sending\n"
        yield
        sender.kill()


@contextmanager
def bulk(pair: Overlapped, *options: str) -> Iterator[None]:
    """Let a pod without a promise want all of the link, in offloaded packets."""
    send = ["iperf3", "--client", SCENE.remote, "--port", "5203", "--time", "60", "--parallel", "4", *options]
    enter = ["nsenter", "--net=/run/netns/A-2"]
    with test_attacks.serving(pair, "A-3", "--port", "5203"), pair.node.running(*enter, *send):
        yield


@pytest.fixture(params=[{}])
def wired(node: Node, request: pytest.FixtureRequest) -> Wired:
    """The pair with the promised pod A-1 and A-2 without a promise; a test may give keys of the plugin's."""
    pair = Wired(node, LINK, **request.param)
    pair.attach("A-1", str(PROMISE))
    pair.attach("A-2")
    pair.plug_in()
    return pair


@pytest.mark.long(one_in=0)
def test_the_wire_carries_what_ethernet_carries_and_no_more(node: Node) -> None:
    """The whole 500 Mbit/s are 40,000 single frames a second, which a slow processor does not make."""
    rate = cases.count("CONCORDE_WIRE_MBITS", 100, 500) * 1_000_000
    pair = Wired(node, rate)
    pair.plug_in()
    send = ["iperf3", "--client", HOST["two"], "--port", "5202", "--time", "60"]

    def judge(factor: int) -> None:
        with test_attacks.serving(pair, "two", "--port", "5202") as told, pair.node.running(*send):
            seconds = test_attacks.each_second(told)
            next(seconds)
            found = [next(seconds) for _ in range(2 * factor)]
        carries = rate * NODES_PAYLOAD / (NODES_FRAME + OVERHEAD)
        assert max(found) <= 1.01 * carries, found
        assert max(found) >= 0.98 * carries, found

    cases.with_more_samples(judge)


@pytest.mark.long(one_in=len(SIZES))
@pytest.mark.parametrize("size", SIZES)
def test_a_promise_is_kept_beside_single_frames_of_any_size(wired: Wired, size: int) -> None:
    beside(wired, lambda: singles(wired, size))


@pytest.mark.long(one_in=0)
def test_a_promise_is_kept_beside_offloaded_packets(wired: Wired) -> None:
    beside(wired, lambda: bulk(wired))


@pytest.mark.long(one_in=0)
@pytest.mark.parametrize("wired", [{"segment": True}], indirect=True)
def test_a_promise_is_kept_beside_small_segments_that_are_taken_apart(wired: Wired) -> None:
    """Of offloaded ones counts once for many what a frame takes: 0.88 of the promise was left."""
    beside(wired, lambda: bulk(wired, "--set-mss", "88"))


def beside(pair: Wired, others: Callable[[], AbstractContextManager[None]]) -> None:
    """Judge each second of the promise, and that the wire had room for all that was sent."""

    def judge(factor: int) -> None:
        with test_attacks.victim(pair) as seconds:
            next(seconds)
            with others():
                next(seconds)
                dropped = pair.carried()["drops"]
                found = [next(seconds) for _ in range(cases.count("CONCORDE_WIRE_SECONDS", 2, 10) * factor)]
                dropped = pair.carried()["drops"] - dropped
        assert min(found) >= LEAST, found
        assert dropped == 0

    cases.with_more_samples(judge)


@pytest.mark.long(one_in=0)
@pytest.mark.parametrize("size", [42, 100, 500, 1464])
def test_a_promise_is_so_much_of_the_wire_in_frames_of_any_size(wired: Wired, size: int) -> None:
    """Full ones are what it says; of small ones it gives as many as take as much of the wire."""
    takes = PROMISE * (NODES_FRAME + OVERHEAD) / FRAME  # of the wire
    each = 8 * max(SMALLEST, size + VXLAN + OVERHEAD)
    reserve = 0.02 * LINK  # which is idle, so the promise may have it

    def judge(factor: int) -> None:
        with singles(wired, SMALLEST_FRAME), singles(wired, size, "A-1"):
            time.sleep(1)
            rate = gained(lambda: wired.arrived("A-3"), 2 * factor)
        assert 0.97 * takes <= rate * each <= 1.03 * (takes + reserve)

    cases.with_more_samples(judge)
