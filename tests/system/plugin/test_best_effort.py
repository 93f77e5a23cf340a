"""What is not promised pods share alike, whatever one sends; and what is idle, promises by their proportion.

The judges are the classes' own counters. A link of 100 Mbit/s.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests import cases
from tests.system.plugin.conftest import Node
from tests.system.plugin.test_uplink_traffic import rates, sent_by
from tests.system.plugin.uplinks import HOST, Pair, gained, on_uplink

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed"),
]


@pytest.fixture
def pair(node: Node) -> Pair:
    """A node whose pods get as many promises as a test asks for."""
    return Pair(node)


def attach(pair: Pair, **guarantees: str) -> None:
    """Pods by their names, in whose order classes are numbered, and the uplink."""
    pair.bring_up(
        {
            name.replace("_", "-"): on_uplink(guarantee, capacity="100M")
            for name, guarantee in guarantees.items()
        }
    )


@contextmanager
def flows(pair: Pair, **options: str) -> Iterator[None]:
    """Let each pod send, as iperf3's options say."""
    with ExitStack() as running:
        for port, (pod, option) in enumerate(options.items(), start=5201):
            running.enter_context(pair.iperf(pod.replace("_", "-"), port, HOST["two"], option))
        yield


@pytest.mark.long(one_in=3)
@pytest.mark.parametrize("flood", ["-u -b 0 -l 64", "-u -b 0 -l 16000", "-P 8"])
def test_a_pods_flood_takes_nothing_of_anothers_share(pair: Pair, flood: str) -> None:
    attach(pair, A_1="80M", A_2="", A_3="")
    with flows(pair, A_3="", A_2=flood):
        sent_by(pair, "c0de:4011")
        sent_by(pair, "c0de:4012")

        def judge(factor: int) -> None:
            found = rates(pair, factor)
            assert found["c0de:4012"] > 0.9 * sum(found.values()) / 2, found
            assert found["c0de:4011"] > 0.4 * sum(found.values()), found

        cases.with_more_samples(judge)


@pytest.mark.long(one_in=0)
def test_what_is_idle_goes_to_promises_in_their_proportion(pair: Pair) -> None:
    attach(pair, A_1="15M", A_2="30M")
    with flows(pair, A_1="", A_2=""):
        sent_by(pair, "c0de:10")
        sent_by(pair, "c0de:11")

        def judge(factor: int) -> None:
            found = rates(pair, factor)
            assert 1.8 < found["c0de:11"] / found["c0de:10"] < 2.2, found
            assert found["c0de:10"] + found["c0de:11"] > 90e6, found

        cases.with_more_samples(judge)


@pytest.mark.long(one_in=0)
def test_who_downloads_beyond_its_promise_does_not_notice_a_neighbours_flood(pair: Pair) -> None:
    """Its acknowledgements are more than a hundredth of its promise, so most are best effort."""
    attach(pair, A_1="40M", A_2="")
    singly = "ip", "link", "set", "dev", "flannel.1", "gso_max_segs", "1"  # each segment is acknowledged
    pair.on("two", *singly)
    with flows(pair, A_1="--reverse --bitrate 60M", A_2="--udp --bitrate 0 --length 1000"):
        sent_by(pair, "c0de:4011")

        def judge(factor: int) -> None:
            assert gained(lambda: pair.received("flannel.1"), factor) * 8 > 0.95 * 60e6

        cases.with_more_samples(judge)
        assert pair.classes()["c0de:4010"] > 0
