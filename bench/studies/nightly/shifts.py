"""Every lasting change of every series of a machine's history: from which level, to which, and is it undone?

Pure functions of the history. Nothing of it is kept from night to night: whoever is killed, or goes through
a night again, comes to the same.

The changes are found by E-divisive with means and Student's test (Fleming et al., "Hunter: Using Change Point
Detection to Hunt for Performance Regressions", ICPE 2023), as Apache Otava has it. How large a change is, is
said with Welch's interval (B. L. Welch, "The generalization of Student's problem when several different
population variances are involved", Biometrika 34, 1947).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean, variance
from typing import Literal

from bench.studies.nightly import metrics
from bench.studies.nightly.night import Night

# Values that are looked at together; p-values above this are chance; smaller changes are of no interest (a
# share of either level). Simulated: 12 series of 30 nights, looked at every night: with Otava's own 0.001 and
# no least size 37 of 60 histories have a false alarm, with these 1 of 200; of falls by 5 % in noise of 1 % 98
# of 100 are found, on the fifth night.
WINDOW, MAX_P, MIN_MAGNITUDE = 30, 1e-5, 0.02
# A change is one if so many values lie before it, and from it on.
CONFIRMED = 5
CONFIDENCE = 0.95
MAX_CHANCE = 0.05


@dataclass(frozen=True)
class Change:
    """From one value on a series has another level; means in the series' unit."""

    at: int  # the index of the first value of the new level
    before: float
    after: float
    low: float  # the 95 % interval of the difference, after less before
    high: float

    @property
    def difference(self) -> float:
        """What the level rose by; negative: it fell."""
        return self.after - self.before

    def share(self, difference: float) -> float | None:
        """Return a difference as a share of the level before; None where that is 0."""
        return difference / abs(self.before) if self.before else None


@dataclass(frozen=True)
class Level:
    """Values that do not differ for good, from one index on."""

    at: int  # the index of the first one
    values: Sequence[float]


def changes(values: Sequence[float]) -> list[Change]:
    """Return every confirmed change of a series, the first one first.

    Raises ValueError for what is no number.
    """
    return [change(after.at, before.values, after.values) for before, after in pairwise(levels(values))]


def levels(values: Sequence[float]) -> list[Level]:
    """Return the levels of a series, of at least CONFIRMED values each; where there is none, all are one.

    What lasts less long is no level, or none yet: it is left out, and if the level after it is as the one
    before it, both are one. Raises ValueError for what is no number.
    """
    if not all(map(math.isfinite, values)):
        raise ValueError("a series is made of finite numbers")
    may_change = len(values) >= 2 * CONFIRMED and min(values) < max(values)
    borders = [0, *(_points(values) if may_change else []), len(values)]
    found: list[Level] = []
    end = 0  # of the last level
    for begin, stop in pairwise(borders):
        level = Level(begin, values[begin:stop])
        if stop - begin < CONFIRMED:
            continue
        if found and begin > end and differ(found[-1].values, level.values) is None:
            found[-1] = Level(found[-1].at, [*found[-1].values, *level.values])
        else:
            found.append(level)
        end = stop
    return found or [Level(0, values)]


def change(at: int, before: Sequence[float], after: Sequence[float]) -> Change:
    """Return how two levels differ. Raises ValueError for fewer than two values of either."""
    low, high = welch(before, after)
    return Change(at, fmean(before), fmean(after), low, high)


def differ(before: Sequence[float], after: Sequence[float]) -> float | None:
    """Return what two levels differ by whose border is known, after less before; None: it is not seen.

    Only one question is asked here, of one side, and not one for every night of every series; so Student's
    test at 5 % suffices, with one spread for both sides, and the least size that is of interest.
    """
    from scipy.special import stdtr

    if min(len(before), len(after)) < 2:
        return None
    freedom = len(before) + len(after) - 2
    squares = variance(before) * (len(before) - 1) + variance(after) * (len(after) - 1)
    error = math.sqrt(squares / freedom * (1 / len(before) + 1 / len(after)))
    difference = fmean(after) - fmean(before)
    if abs(difference) < MIN_MAGNITUDE * abs(fmean(before)) or difference == 0:
        return None
    chance = float(stdtr(freedom, -abs(difference) / error)) if error else 0.0
    return difference if chance <= MAX_CHANCE else None


def welch(before: Sequence[float], after: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the mean of ``after`` less that of ``before``.

    Raises ValueError for fewer than two values of either.
    """
    from scipy.special import stdtrit

    if min(len(before), len(after)) < 2:
        raise ValueError("an interval needs two values of each level")
    difference = fmean(after) - fmean(before)
    first, second = variance(before) / len(before), variance(after) / len(after)
    spread = first + second
    if spread == 0:
        return difference, difference
    freedom = spread**2 / (first**2 / (len(before) - 1) + second**2 / (len(after) - 1))
    half = float(stdtrit(freedom, 1 - (1 - CONFIDENCE) / 2)) * math.sqrt(spread)
    return difference - half, difference + half


def _points(values: Sequence[float]) -> list[int]:
    """Return the indices at which Otava sees changes, in order."""
    import numpy as np
    from otava.analysis import compute_change_points

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of levels without any spread, whose quotient has no value
        # A list: of an array it raises ValueError as soon as there are several windows.
        found, _ = compute_change_points(
            list(values), window_len=WINDOW, max_pvalue=MAX_P, min_magnitude=MIN_MAGNITUDE
        )
    return sorted(int(point.index) for point in found)


Kind = Literal["worse", "better", "back", "machine"]


@dataclass(frozen=True)
class Shift:
    """One series that has another level from a night on; levels are means, in the series' unit."""

    metric: str
    first: int  # the index of that night
    last: int  # and of the last one before that has the series
    change: Change  # from the level before to the one from that night on
    now: Change  # from the same level before to the one of tonight
    kind: Kind
    undone: int | None = None  # the index of the first night that was as before again


def of(nights: Sequence[Night]) -> list[Shift]:
    """Return all changes of a history, in the order of their nights."""
    series = metrics.series(nights)
    found = [shift for metric in series for shift in _of(metric, series)]
    return sorted(found, key=lambda shift: shift.first)


def _of(metric: str, series: Mapping[str, Mapping[int, float]]) -> list[Shift]:
    indices = list(series[metric])
    every = levels(list(series[metric].values()))
    found: list[tuple[Level, Shift]] = []  # each with the level before it
    for before, after in pairwise(every):
        first, changed = indices[after.at], _change(before, after)
        undoes = [each.undone is None and _undone(level, after, each.change) for level, each in found]
        restored = any(undo and not _better(each) for undo, (_, each) in zip(undoes, found, strict=True))
        found = [
            (level, replace(each, undone=first) if undo else each)
            for undo, (level, each) in zip(undoes, found, strict=True)
        ]
        shift = Shift(metric, first, indices[after.at - 1], changed, _change(before, every[-1]), "worse")
        found.append((before, replace(shift, kind=_kind(shift, series, restored))))
    return [shift for _, shift in found]


def _change(before: Level, after: Level) -> Change:
    return change(after.at, before.values, after.values)


def _undone(before: Level, now: Level, change: Change) -> bool:
    """Tell whether a level is no longer seen to differ, in a change's direction, from the one before it."""
    left = differ(before.values[-WINDOW:], now.values[:WINDOW])
    return left is None or (left > 0) != (change.difference > 0)


def _kind(shift: Shift, series: Mapping[str, Mapping[int, float]], restored: bool) -> Kind:
    if _better(shift) and restored:
        return "back"
    if _machine(shift, series):
        return "machine"
    return "better" if _better(shift) else "worse"


def _better(shift: Shift) -> bool:
    return (shift.change.difference > 0) == metrics.kind_of(shift.metric).bigger_is_better


def _machine(shift: Shift, series: Mapping[str, Mapping[int, float]]) -> bool:
    """Tell whether what the unshaped paths of a series' scenario carry changed as the series did."""
    calibration = metrics.calibration_of(shift.metric)
    if shift.metric == calibration:
        return True
    carried = series.get(calibration, {})
    before = [value for index, value in carried.items() if index < shift.first][-WINDOW:]
    after = [value for index, value in carried.items() if index >= shift.first][:WINDOW]
    found = differ(before, after)
    return found is not None and (found > 0) == _better(shift)
