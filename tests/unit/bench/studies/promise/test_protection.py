"""From which moment on every 50 ms have nine tenths of a floor."""

from __future__ import annotations

import pytest

from bench.studies.promise.protection import held_after_s, shares
from bench.studies.promise.records import Point

FLOOR = 100e6


def counted(rates: list[tuple[float, float]], step: float = 0.01) -> list[Point]:
    """Points every 10 ms of stretches of so many seconds at so many bits per second."""
    points, at, bits = [(0.0, 0.0)], 0.0, 0.0
    for seconds, rate in rates:
        for _ in range(round(seconds / step)):
            at, bits = at + step, bits + rate * step
            points.append((round(at, 6), bits))
    return points


def test_a_floor_that_was_never_left_holds_at_once() -> None:
    assert held_after_s(counted([(2, FLOOR)]), FLOOR, 0.5, 1.9) == 0.0


def test_less_than_a_tenth_may_be_missing_and_no_more() -> None:
    assert held_after_s(counted([(2, 0.901 * FLOOR)]), FLOOR, 0.5, 1.9) == 0.0
    assert held_after_s(counted([(2, 0.899 * FLOOR)]), FLOOR, 0.5, 1.9) is None


def test_the_moment_is_where_the_last_short_window_begins() -> None:
    """Nothing for 100 ms from 1.0 on: a window lacks a tenth of itself until 5 ms before the end of that."""
    points = counted([(1, FLOOR), (0.1, 0), (1, FLOOR)])
    assert held_after_s(points, FLOOR, 1.0, 2.0) == pytest.approx(0.095, abs=1e-6)


def test_what_was_before_is_not_asked() -> None:
    points = counted([(0.5, 0), (1.5, FLOOR)])
    assert held_after_s(points, FLOOR, 0.5, 2.0) == 0.0


def test_a_short_stretch_is_made_up_for_by_a_burst() -> None:
    points = counted([(1, FLOOR), (0.01, 0), (0.01, 2 * FLOOR), (1, FLOOR)])
    found = held_after_s(points, FLOOR, 0.9, 1.9)
    assert found == pytest.approx(0.065, abs=1e-6)  # windows that end between the two have only the gap
    assert held_after_s(points, FLOOR, 1.02, 1.9) == 0.0


def test_a_late_gap_counts_for_all_that_was_before() -> None:
    points = counted([(1.5, FLOOR), (0.05, 0), (0.5, FLOOR)])
    found = held_after_s(points, FLOOR, 0.2, 2.0)
    assert found == pytest.approx(1.345, abs=1e-6)


def test_a_gap_in_which_the_machine_stood_still_is_excused() -> None:
    points = counted([(1.5, FLOOR), (0.05, 0), (0.5, FLOOR)])
    assert held_after_s(points, FLOOR, 0.2, 2.0, excused=[(1.5, 1.55)]) == 0.0


def test_without_points_for_all_of_the_time_there_is_no_answer() -> None:
    with pytest.raises(ValueError, match="counted"):
        held_after_s(counted([(1, FLOOR)]), FLOOR, 0.5, 1.5)
    with pytest.raises(ValueError, match="counted"):
        held_after_s([], FLOOR, 0.5, 1.5)


def test_shares_are_of_windows_one_behind_the_other() -> None:
    points = counted([(1, FLOOR), (0.1, 0.5 * FLOOR), (1, 2 * FLOOR)])
    assert shares(points, FLOOR, 0.9, 1.25) == pytest.approx([1.0, 0.5, 2.0])
    with pytest.raises(ValueError, match="counted"):
        shares(points, FLOOR, 1.0, 3.0)
