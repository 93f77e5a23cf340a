"""Where a series of nightly numbers changed for good: pure functions of lists.

The changes are found by E-divisive with means and Student's test (Fleming et al., "Hunter: Using Change Point
Detection to Hunt for Performance Regressions", ICPE 2023), as Apache Otava has it. How large a change is, is
said with Welch's interval (B. L. Welch, "The generalization of Student's problem when several different
population variances are involved", Biometrika 34, 1947).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, variance

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
