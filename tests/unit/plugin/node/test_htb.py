from __future__ import annotations

from concorde.node import htb
from concorde.node.records import Tree
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.plugin.node.examples import GIGA, TREE, entry


def test_the_default_class_has_exactly_what_is_not_promised() -> None:
    assert htb.default_rate(TREE, 5 * GIGA) == 3_820_000_000
    assert htb.default_rate(TREE, TREE.promisable) == htb.LEAST_RATE


@given(st.integers(1000, 10**12))
def test_every_burst_is_a_millisecond_or_a_packet_and_fits_the_kernels_clock(rate: int) -> None:
    burst = htb.burst(rate)
    assert burst * 8 <= 200 * rate
    assert burst >= min(65536, rate * 200 // 8)
    assert burst <= max(65536, rate // 8 // 1000)


def test_a_class_and_its_queue() -> None:
    given_entry = entry(minor=0x10, ceil=2 * GIGA)
    assert htb.add_class(TREE, 0x10, GIGA, given_entry).splitlines() == [
        "class add dev eth0 parent c0de:1 classid c0de:10 htb prio 0 rate 1000000000bit ceil 2000000000bit"
        " burst 375000b cburst 250000b quantum 65536",
        "qdisc replace dev eth0 parent c0de:10 handle 10: bfifo limit 1250000",
    ]


def test_the_tree_is_planted_with_all_that_catches_packets_before_any_pod() -> None:
    lines = htb.plant(TREE, 0).splitlines()
    assert lines[0] == "qdisc add dev eth0 root handle c0de: htb default fffe"
    assert lines[1].startswith("class add dev eth0 parent c0de: classid c0de:1 htb")
    assert lines[2].startswith("class add dev eth0 parent c0de:1 classid c0de:fffe")
    assert "rate 180000000bit ceil 9000000000bit" in lines[4]
    assert lines[-1].endswith("protocol arp pref 1 u32 match u32 0 0 classid c0de:fffd")


def test_the_queue_of_all_without_a_promise_is_two_milliseconds_or_two_packets() -> None:
    assert htb.queue(TREE, None) == 9 * GIGA // 8 * 2 // 1000
    slow = Tree(TREE.uplink, 100_000_000, TREE.reserve, TREE.ports)
    assert htb.queue(slow, None) == 2 * 65536
