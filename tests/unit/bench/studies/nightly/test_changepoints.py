"""Changes that are there are found, on the night they are confirmed; and chance is not taken for one."""

from __future__ import annotations

import math
import random
from statistics import fmean

import pytest

from bench.studies.nightly.shifts import CONFIRMED, changes, differ, welch
from tests import cases

HISTORIES = cases.some_of("CONCORDE_HISTORIES", 3, 200)
SERIES, NIGHTS = 12, 30


def noise(seed: int, count: int, level: float = 100.0, spread: float = 1.0) -> list[float]:
    chance = random.Random(seed)
    return [chance.gauss(level, spread) for _ in range(count)]


def test_a_fall_is_found_on_the_fifth_night_and_not_before() -> None:
    before, after = noise(1, 13), noise(2, 5, level=95.0)
    for nights in range(CONFIRMED):
        assert changes([*before, *after[:nights]]) == []
    (found,) = changes([*before, *after])
    assert (type(found.at), found.at) == (int, 13)
    share = found.share(found.difference)
    assert share is not None
    assert abs(share + 0.05) < 0.015
    assert found.low < found.difference < found.high < 0


def test_falls_and_rises_are_found_alike() -> None:
    found = {
        level: sum(
            [one.at for one in changes([*noise(seed, 20), *noise(1000 + seed, 5, level)])] == [20]
            for seed in range(40)
        )
        for level in (95.0, 105.0)
    }
    assert min(found.values()) >= 36
    assert abs(found[95.0] - found[105.0]) <= 3


def test_a_change_needs_five_nights_before_it() -> None:
    assert changes([*noise(1, 4), *noise(2, 20, level=80.0)]) == []
    assert [one.at for one in changes([*noise(1, 5), *noise(2, 20, level=80.0)])] == [5]


def test_a_change_of_less_than_two_percent_is_of_no_interest() -> None:
    assert changes([*noise(1, 20, spread=0.1), *noise(2, 10, level=98.5, spread=0.1)]) == []
    assert changes([*noise(1, 20, spread=0.1), *noise(2, 10, level=97.5, spread=0.1)])


def test_levels_without_spread_are_told_apart() -> None:
    assert changes([5.0] * 30) == []
    (found,) = changes([0.0] * 10 + [3.0] * 5)
    assert (found.at, found.before, found.after, found.low, found.high) == (10, 0.0, 3.0, 3.0, 3.0)
    assert found.share(found.difference) is None


def test_several_windows_are_looked_at() -> None:
    values = [*noise(1, 45), *noise(2, 40, level=90.0), *noise(3, 20)]
    assert [one.at for one in changes(values)] == [45, 85]


@pytest.mark.parametrize("short", [[70.0], [70.0, 71.0], [70.0, 71.0, 70.0, 71.0]])
def test_what_lasts_less_than_five_nights_is_no_level(short: list[float]) -> None:
    before, after = noise(1, 15, spread=0.1), noise(2, 15, spread=0.1)
    assert changes([*before, *short, *after]) == []
    (found,) = changes([*before, *short, *(value - 10 for value in after)])
    assert found.at == 15 + len(short)
    assert found.difference == pytest.approx(-10, abs=0.2)
    assert changes([*before, *short]) == []  # not yet
    assert changes([*short, *after]) == []


@pytest.mark.parametrize("short", range(1, 5))
def test_levels_without_spread_may_be_short(short: int) -> None:
    (found,) = changes([100.0] * 10 + [50.0] * short + [80.0] * 10)
    assert (found.at, found.before, found.after) == (10 + short, 100.0, 80.0)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        changes([*noise(1, 20), value])


def test_the_interval_is_welchs() -> None:
    from scipy import stats  # not above: it takes a second, wherever tests are collected

    before, after = noise(3, 7, 50.0, 4.0), noise(4, 11, 47.0, 1.0)
    expected = stats.ttest_ind(after, before, equal_var=False).confidence_interval(0.95)
    assert welch(before, after) == pytest.approx((expected.low, expected.high), rel=1e-9)
    with pytest.raises(ValueError, match="two values"):
        welch([1.0], after)


def test_where_the_border_is_known_less_suffices() -> None:
    before, after = noise(5, 13, spread=2.0), noise(6, 5, level=96.0, spread=2.0)
    assert changes([*before, *after]) == []  # it is too little to be seen among all nights of all series
    found = differ(before, after)
    assert found is not None
    assert found == pytest.approx(fmean(after) - fmean(before))
    assert differ(before, [94.0]) is None
    assert differ(noise(1, 9, spread=0.01), noise(2, 9, level=101.0, spread=0.01)) is None  # 1 %
    assert differ([5.0] * 3, [6.0] * 3) == 1.0
    assert differ([5.0] * 3, [5.0] * 3) is None


def test_where_the_border_is_known_chance_is_students() -> None:
    from scipy import stats

    pairs = [(noise(seed, 13, spread=5.0), noise(500 + seed, 5, spread=5.0)) for seed in range(100)]
    for before, after in pairs:
        chance = stats.ttest_ind(before, after).pvalue / 2
        large = abs(fmean(after) - fmean(before)) >= 0.02 * fmean(before)
        assert (differ(before, after) is not None) is bool(chance <= 0.05 and large)


@pytest.mark.long
def test_chance_is_hardly_ever_taken_for_a_change() -> None:
    """Independent normal noise, looked at every night; at most one history in a hundred may have an alarm."""

    def judge(factor: int) -> None:
        histories = HISTORIES(factor)
        assert sum(_alarm(history) for history in histories) <= len(histories) // 100

    cases.with_more_samples(judge, (1, 200))


def _alarm(history: int) -> bool:
    series = [noise(history * SERIES + number, NIGHTS) for number in range(SERIES)]
    return any(changes(values[:night]) for values in series for night in range(2 * CONFIRMED, NIGHTS + 1))
