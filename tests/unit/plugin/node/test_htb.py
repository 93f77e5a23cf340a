from __future__ import annotations

from concorde.node import htb
from concorde.node.records import Tree
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.plugin.node.examples import GIGA, TREE, entry

FAIR = " fq_codel "
ETHERNET = Tree("eth0", 9 * GIGA, 180_000_000, (22,))


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
        " burst 375000b cburst 250000b quantum 6250000 overhead 0 mpu 0",
        "qdisc replace dev eth0 parent c0de:10 handle 10: bfifo limit 1250000",
    ]


def test_where_the_kernel_can_flows_take_turns_in_every_queue_and_within_every_bucket() -> None:
    one = entry(minor=0x10, ceil=2 * GIGA)
    (_, queue), (_, bucket, within) = (
        htb.add_class(TREE, minor, GIGA, one, fair=True).splitlines() for minor in htb.minors(one)
    )
    turns = "flows 256 drop_batch 1 target 1s"
    assert queue == (
        f"qdisc replace dev eth0 parent c0de:10 handle 10: fq_codel memory_limit {2 * 1250000} {turns}"
    )
    assert bucket == htb.add_class(TREE, 0x4010, GIGA, one).splitlines()[1]
    assert within == f"qdisc replace dev eth0 parent 4010:1 fq_codel memory_limit {2 * 2250000} {turns}"
    planted = htb.plant(TREE, 0, fair=True).splitlines()
    assert [line.split()[5] for line in planted if FAIR in line] == ["fffe:1", "c0de:fffd"]
    assert [line for line in planted if FAIR not in line and "c0de:fffd" not in line] == [
        line for line in htb.plant(TREE, 0, fair=False).splitlines() if "c0de:fffd" not in line
    ]


def test_a_pods_best_effort_takes_turns_of_what_a_packet_may_have() -> None:
    slow = Tree("eth0", 100_000_000, 2_000_000, (22,))
    one = entry(minor=0x10, rate=40_000_000)
    assert htb.minors(one) == [0x10, 0x4010]
    assert htb.minors(entry(minor=0x10, rate=0)) == [0x4010]
    assert htb.minors(entry(rate=0)) == []
    assert {htb.of_pod(minor) for minor in htb.minors(one)} == {0x10}
    added, queue = htb.add_class(slow, 0x4010, one.rate, one).splitlines()
    assert added.startswith("class add dev eth0 parent c0de:fffc classid c0de:4010 htb prio 0 rate 1000bit")
    assert " quantum 9216 " in added
    assert queue.endswith("parent c0de:4010 handle 4010: tbf rate 1000000073728bit burst 9216b limit 131072")
    assert " quantum 65536 " in htb.add_class(ETHERNET, 0x4010, one.rate, one)
    assert " burst 65536b " in htb.add_class(ETHERNET, 0x4010, one.rate, one)


@given(st.integers(1000, 10**10), st.integers(1000, 10**10))
def test_turns_are_in_proportion_to_promises_and_hold_a_largest_packet(first: int, second: int) -> None:
    turns = []
    for rate in (first, second):
        words = htb.class_line("add", TREE, 0x10, rate, rate).split()
        turns.append(int(words[words.index("quantum") + 1]))
    assert min(turns) >= 65536
    if min(first, second) >= 20_000_000:
        assert abs(turns[0] / turns[1] / (first / second) - 1) < 0.001


def test_a_class_counts_what_its_frames_take_of_the_wire() -> None:
    promise = GIGA * 1514 // 1538  # of layer 2: 1 Gbit/s of the wire
    added = htb.add_class(ETHERNET, 0x10, promise, entry(rate=promise, minor=0x10, ceil=ETHERNET.capacity))
    assert f"rate {GIGA - 1}bit ceil {ETHERNET.usable}bit" in added
    assert "overhead 24 mpu 84\n" in added
    # 9 Gbit/s of the wire, less what offloaded packets do not count, which is as much as 1538 less 1514.
    assert ETHERNET.usable == 9 * GIGA * 1514 // 1538 // 8 * 8
    assert htb.default_rate(ETHERNET, promise) == ETHERNET.usable - ETHERNET.reserve - (GIGA - 1)
    assert htb.change_rest(ETHERNET, 8000).count(" quantum 65536 overhead 24 mpu 84\n") == 2


@given(st.lists(st.integers(1000, 10**9), max_size=9), st.integers(0, 200))
def test_what_was_admitted_leaves_the_default_class_its_least(promises: list[int], overhead: int) -> None:
    tree = Tree("eth0", 9 * GIGA, 180_000_000, (22,), overhead)
    entries = [entry(f"A-{n}", promise, n, minor=0x10 + n) for n, promise in enumerate(promises)]
    if sum(promises) <= tree.promisable:
        rates = [htb.rates(tree, one.minor or 0, sum(promises), one)[0] for one in entries]
        left = tree.usable - tree.reserve - sum(rates)
        assert left >= 0
        assert htb.default_rate(tree, sum(promises)) <= max(htb.LEAST_RATE, left)


def test_offloaded_packets_become_frames_in_a_bucket_of_one() -> None:
    tree = Tree("eth0", 9 * GIGA, 180_000_000, (22,), segment=htb.largest_frame(1500))
    one = entry(minor=0x10)
    assert htb.queue_lines(tree, 0x10, one, fair=False).endswith(
        " parent c0de:10 handle 10: tbf rate 1000000012144bit burst 1518b limit 1250000\n"
    )
    bucket = "tbf", 125_000_001_518
    assert htb.queues(tree, 0x10, one, fair=False) == {"c0de:10": (*bucket, 1_250_000)}
    assert htb.queues(tree, 0x4010, one, fair=True) == {
        "c0de:4010": (*bucket, 2_250_000),
        "4010:1": ("fq_codel", 0, 4_500_000),
    }


def test_the_tree_is_planted_with_all_that_catches_packets_before_any_pod() -> None:
    lines = htb.plant(TREE, 0, fair=False).splitlines()
    assert lines[0] == "qdisc add dev eth0 root handle c0de: htb default fffe"
    assert lines[1].startswith("class add dev eth0 parent c0de: classid c0de:1 htb")
    assert lines[2].startswith("class add dev eth0 parent c0de:1 classid c0de:fffc")
    assert lines[3].startswith("class add dev eth0 parent c0de:fffc classid c0de:fffe")
    assert "rate 180000000bit ceil 9000000000bit" in lines[5]
    assert lines[-1].endswith("protocol arp pref 1 u32 match u32 0x0 0x0 classid c0de:fffd")


def test_the_queue_of_all_without_a_promise_is_two_milliseconds_or_two_packets() -> None:
    assert htb.queue(TREE, htb.DEFAULT, None) == 9 * GIGA // 8 * 2 // 1000
    assert htb.queue(TREE, 0x4010, entry(minor=0x10)) == 9 * GIGA // 8 * 2 // 1000
    slow = Tree(TREE.uplink, 100_000_000, TREE.reserve, TREE.ports)
    assert htb.queue(slow, htb.DEFAULT, None) == 2 * 65536
