"""Acknowledgements of what a pod receives keep what was promised to them, whatever else its node sends.

The uplink has 50 Mbit/s, all of it promised, and to A-1 nothing but answers. The flow that it receives is of
20, and nothing that is received is put together, so that there are as many acknowledgements as can be.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from bench.studies.promise.frames import tcp
from tests import cases
from tests.system.plugin.conftest import Node
from tests.system.plugin.test_uplink_traffic import BYTES, NOISE, REMOTE, send, sent_by
from tests.system.plugin.uplinks import HOST, Pair, gained, ledger, on_uplink

FLOW = 20_000_000  # payload, bits per second
# The same in the pod's full frames, and in VXLAN's.
FRAMES, WIRE = FLOW * 1464 // 1398, FLOW * 1514 // 1398
CLASS, EFFORT = "c0de:10", "c0de:4010"
VTEP = "172.16.2.0"  # the other node's
ACK, SYN_ACK, PUSH = 0x10, 0x12, 0x18
# Sends a segment to an address, so often or for ever.
SEGMENTS = """
import itertools, socket, sys
sending = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
sending.connect((sys.argv[1], 0))
segment, times = bytes.fromhex(sys.argv[2]), int(sys.argv[3])
for _ in itertools.repeat(None, times) if times else itertools.count():
    sending.send(segment)
"""
UDP = "--udp --bitrate 0 --length 1000"


@pytest.fixture
def pair(node: Node) -> Pair:
    return Pair(node)


def attach(pair: Pair, answers: str = "", **guarantees: str) -> None:
    """A-1 with answers, others by their names in whose order classes are numbered, and the uplink."""
    promised = {"A-1": on_uplink(answers=answers, capacity="50M")}
    for name, guarantee in guarantees.items():
        promised[name.replace("_", "-")] = on_uplink(guarantee, capacity="50M")
    pair.bring_up(promised)


def segments(pod: int, flags: int, load: bytes = b"", times: int = 0) -> list[str]:
    """A program that sends a segment from A-1, A-2 and so on."""
    segment = tcp((f"172.16.1.{pod + 1}", REMOTE), (4000, 4000), flags, load)
    return ["/usr/bin/python3", "-c", SEGMENTS, REMOTE, segment.hex(), str(times)]


@contextmanager
def receiving(pair: Pair) -> Iterator[None]:
    """Let A-1 receive a flow that its sender's node holds to its rate."""
    pair.on("two", *["ip", "link", "set", "dev", "flannel.1", "gso_max_segs", "1"])
    pair.on(
        "two",
        *("tc", "-batch", "-"),
        stdin="qdisc add dev eth0 root handle 1: htb default 1\n"
        f"class add dev eth0 parent 1: classid 1:1 htb rate {WIRE}bit burst 64kb cburst 64kb\n"
        "qdisc add dev eth0 parent 1:1 bfifo limit 96000\n",
    )
    with pair.iperf("A-1", 5201, VTEP, "--reverse"):
        while rate(pair, 0.3) < 0.9 * FRAMES:
            pass
        yield


def rate(pair: Pair, seconds: float) -> float:
    """What A-1 gets in that time (bits per second)."""
    return gained(lambda: pair.received("eth0", pod="A-1"), seconds) * 8


@contextmanager
def flooding(pair: Pair, imitating: bool = False) -> Iterator[None]:
    """Let A-2 and A-3 send as much as they can, and A-4 as many acknowledgements of nothing."""
    with ExitStack() as running:
        if imitating:
            enter = "nsenter", "--net=/run/netns/A-4"
            running.enter_context(pair.node.running(*enter, *segments(4, ACK)))
            sent_by(pair, "c0de:4013")
        for number in (2, 3):
            running.enter_context(pair.iperf(f"A-{number}", 5200 + number, HOST["two"], UDP))
        for name in ("c0de:11", "c0de:12"):
            sent_by(pair, name)
        yield


@pytest.mark.alone
@pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")
@pytest.mark.parametrize(
    "imitating", [False, pytest.param(True, marks=pytest.mark.long(one_in=0))], ids=["UDP", "and imitation"]
)
def test_a_flow_keeps_its_rate_whose_answers_are_admitted(pair: Pair, imitating: bool) -> None:
    attach(pair, "700k", A_2="22590k", A_3="22590k", A_4="")
    with receiving(pair), flooding(pair, imitating):

        def judge(factor: int) -> None:
            assert rate(pair, factor) > 0.95 * FRAMES

        cases.with_more_samples(judge)


@pytest.mark.alone
@pytest.mark.long(one_in=0)
@pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")
def test_a_flow_is_as_good_as_lost_whose_answers_are_not(pair: Pair) -> None:
    """Where all is promised to others, best effort has next to nothing."""
    attach(pair, A_2="22940k", A_3="22940k")
    with receiving(pair), flooding(pair):

        def judge(factor: int) -> None:
            assert rate(pair, factor) < 0.1 * FRAMES

        cases.with_more_samples(judge)


def test_a_promise_to_answers_is_for_nothing_else(pair: Pair) -> None:
    attach(pair, "10M")
    (told,) = ledger(pair.node)["attachments"]
    assert (told["guarantee"], told["answers"], told["class"]) == (None, 10_000_000, CLASS)
    for data in (
        lambda: send(pair.node, "A-1"),
        lambda: pair.node.in_pod("A-1", *segments(1, ACK, bytes(1000), 100)),
        lambda: pair.node.in_pod("A-1", *segments(1, PUSH, bytes(10), 2000)),
    ):
        sent = pair.sent(data)
        assert sent[EFFORT] > BYTES
        assert sent[CLASS] == 0
    sent = pair.sent(lambda: pair.node.in_pod("A-1", *segments(1, ACK, times=2000)))
    assert sent[CLASS] > BYTES
    assert sent[EFFORT] < NOISE


def test_more_answers_than_are_promised_are_best_effort_and_connections_few(pair: Pair) -> None:
    attach(pair, "100k")
    # The limit begins with a second's worth and two packets: of 40 bytes, each a frame of 104.
    begun = time.monotonic()
    sent = pair.sent(lambda: pair.node.in_pod("A-1", *segments(1, ACK, times=6000)))
    most = (100_000 // 8 * 0.312 * (time.monotonic() - begun + 1) + 3000) / 40 * 104
    assert 0 < sent[CLASS] < most + NOISE
    assert sent[EFFORT] > BYTES
    sent = pair.sent(lambda: pair.node.in_pod("A-1", *segments(1, SYN_ACK, times=2000)))
    assert 0 < sent[CLASS] < 3_100 / 40 * 104 + NOISE
    assert sent[EFFORT] > BYTES
