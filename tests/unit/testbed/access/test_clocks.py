"""The arithmetic of clocks, against NTP's own examples of what a delay does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.access.clocks import Clock, Reading, estimate, skew


def test_four_timestamps_of_an_even_way() -> None:
    reading = Reading(asked_s=10.0, received_s=12.1, replied_s=12.2, answered_s=10.3)
    assert reading.offset_s == pytest.approx(2.0)
    assert reading.round_trip_s == pytest.approx(0.2)


@given(
    st.floats(-1e6, 1e6),
    st.floats(0, 10),
    st.floats(0, 10),
    st.floats(0, 10),
)
def test_the_estimate_is_wrong_by_half_the_round_trip_at_most(
    offset: float, there: float, thinking: float, back: float
) -> None:
    reading = Reading(0.0, there + offset, there + thinking + offset, there + thinking + back)
    clock = estimate([reading])
    assert abs(clock.offset_s - offset) <= clock.uncertainty_s + 1e-6


def test_the_shortest_round_trip_counts() -> None:
    slow, quick = Reading(0, 5, 5, 4), Reading(0, 3.05, 3.05, 0.1)
    assert estimate([slow, quick]) == Clock(quick.offset_s, quick.round_trip_s)


def test_skew_is_between_the_nodes() -> None:
    assert skew([Clock(100.0, 0.1), Clock(100.25, 0.1), Clock(100.1, 0.1)]) == pytest.approx(0.25)
    assert skew([]) == 0
