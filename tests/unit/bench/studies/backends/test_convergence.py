"""When packets arrive again, and when entries are gone, of streams whose answer is known."""

from __future__ import annotations

import pytest

from bench.studies.backends import results
from bench.studies.backends.records import Event, Run
from tests.unit.bench.studies.backends import known
from tests.unit.bench.studies.backends.known import MS, SECOND


def run(first: int, last: int) -> Run:
    """Return a run of packets, one a millisecond, that take nothing to arrive."""
    return first, first * MS, last, last * MS


def event(name: str, begun_s: float) -> Event:
    return Event.model_validate({"name": name, "begun_ns": begun_s * SECOND, "done_ns": begun_s * SECOND})


WHOLE = [run(0, 9_999)]


def test_a_pair_that_never_ceases_has_converged_at_once() -> None:
    assert results.arrival_ns([WHOLE, WHOLE], 2 * SECOND, 10 * SECOND, MS) == 0


def test_the_slowest_pair_counts() -> None:
    slow, slower = [run(0, 1999), run(2_300, 9_999)], [run(0, 1999), run(2_700, 9_999)]
    assert results.arrival_ns([WHOLE, slow, slower], 2 * SECOND, 10 * SECOND, MS) == 700 * MS


def test_an_outage_counts_to_its_last_end() -> None:
    flapping = [run(0, 1999), run(2_100, 2_400), run(2_900, 9_999)]
    assert results.arrival_ns([flapping], 2 * SECOND, 10 * SECOND, MS) == 900 * MS


def test_two_lost_packets_are_no_outage() -> None:
    assert results.arrival_ns([[run(0, 4_000), run(4_003, 9_999)]], 2 * SECOND, 10 * SECOND, MS) == 0
    three = [run(0, 4_000), run(4_004, 9_999)]
    assert results.arrival_ns([three], 2 * SECOND, 10 * SECOND, MS) == 2_004 * MS


def test_a_pair_whose_packets_do_not_come_back_has_not_converged() -> None:
    assert results.arrival_ns([WHOLE, [run(0, 1999)]], 2 * SECOND, 10 * SECOND, MS) is None
    assert results.arrival_ns([WHOLE, []], 2 * SECOND, 10 * SECOND, MS) is None


def test_what_comes_after_the_next_event_is_the_next_ones() -> None:
    pair = [run(0, 1999), run(6_000, 9_999)]
    assert results.arrival_ns([pair], 2 * SECOND, 5 * SECOND, MS) is None
    assert results.arrival_ns([pair], 5 * SECOND, 10 * SECOND, MS) == SECOND


def test_an_outage_before_is_the_event_befores() -> None:
    pair = [run(0, 1999), run(2_500, 9_999)]
    assert results.arrival_ns([pair], 5 * SECOND, 10 * SECOND, MS) == 0


def test_packets_that_waited_in_a_queue_arrive_when_they_arrive() -> None:
    waited: Run = (1_500, 3 * SECOND, 9_999, 9_999 * MS)
    assert results.arrival_ns([[run(0, 1_400), waited]], 2 * SECOND, 10 * SECOND, MS) == SECOND


GONE = [
    (2 * SECOND + 3 * MS, 0, "del", "route", "10.128.3.0/24"),
    (2 * SECOND + 9 * MS, 1, "del", "forwarding", "10.200.0.14"),
]


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        (GONE, 0.009),
        (GONE[:1], None),
        ([], None),
        ([(moment, place, "add", kind, to) for moment, place, _, kind, to in GONE], None),
        ([(moment - SECOND, place, what, kind, to) for moment, place, what, kind, to in GONE], None),
        ([(moment, place, what, kind, "10.128.4.0/24") for moment, place, what, kind, _ in GONE], None),
    ],
)
def test_an_entry_is_gone_when_no_node_has_it(
    changes: list[tuple[int, int, str, str, str]], seconds: float | None
) -> None:
    found = results.size(known.nodes([WHOLE], [event("leave", 2)], changes))
    assert found.events[0].gone_s == seconds


def test_each_event_is_looked_at_up_to_the_next_one() -> None:
    pair = [run(0, 1_999), run(5_250, 9_999)]
    found = results.size(known.nodes([pair, pair], [event("leave", 2), event("join", 5)], GONE))
    leave, join = found.events
    assert (leave.arrive_s, leave.gone_s, leave.given_s) == (None, 0.009, 3.0)
    assert join.arrive_s == pytest.approx(0.25)
    assert join.given_s == 5.0
    assert (found.rest, found.talking, found.daemons, found.daemon_bytes) == (9, 10, 4, 8_000_000)
    assert found.invalid == []


def test_what_the_kernel_said_and_was_not_read_may_have_been_an_entry() -> None:
    found = results.size(known.nodes([WHOLE], [event("join", 2)], lost=True))
    assert found.invalid == ["the kernel had more to say of entries than was read"]


@pytest.mark.parametrize(
    ("late_at_s", "by_ms", "too_late"),
    [
        (2.1, 15, False),
        (2.1, 25, True),
        (2.4, 25, False),  # after they had arrived
        (1.9, 25, False),  # before
    ],
)
def test_probes_that_are_late_say_nothing_of_less_than_ten_times_that(
    late_at_s: float, by_ms: int, too_late: bool
) -> None:
    pair = [run(0, 1_999), run(2_200, 9_999)]
    late = [(round(late_at_s * SECOND), by_ms * MS)]
    (found,) = results.size(known.nodes([pair, pair], [event("join", 2)], late=late)).events
    assert found.arrive_s == pytest.approx(0.2)
    assert found.too_late == too_late
