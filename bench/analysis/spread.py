"""How well are a flow's numbers known?

Over repetitions, if there are enough of them; else from the samples, of this run alone (``intervals``). In
both cases the shortfall's interval is the mean's, told as shares of what is expected.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from bench.analysis import intervals
from bench.analysis.intervals import Interval
from bench.observations.causes import Part

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from bench.analysis.intervals import Floats

Unit = Literal["repetitions", "within this run"]

# With fewer, Student's interval is mostly a statement about their number.
FEWEST_REPETITIONS = 5


class Series(NamedTuple):
    """The samples of one transfer, phase and repetition, in order of time; one entry a sample."""

    rates: Floats  # bits per second
    seconds: Floats
    attained: NDArray[np.bool_]  # false without a threshold

    @property
    def mean(self) -> float:
        """The mean weighted by time, as ``statistics.mean``."""
        return float((self.rates * self.seconds).sum() / self.seconds.sum())


@dataclass(frozen=True)
class Spread:
    """Intervals of one transfer in one phase, and what they are made of."""

    unit: Unit
    mean: Interval  # bits per second
    attainment: Interval
    lag1: float | None  # autocorrelation of neighbouring samples; None: they do not vary
    block: int | None = None  # samples; None: nothing was resampled

    def shortfall(self, expected: float) -> Interval:
        """Return the interval of the share of ``expected`` bits per second that the mean misses."""
        return Interval(max(0.0, 1 - self.mean.high / expected), max(0.0, 1 - self.mean.low / expected))


@dataclass(frozen=True)
class Difference:
    """By how much a mean is another in one phase than in the other, bits per second."""

    unit: Unit
    value: float
    interval: Interval


class IntervalSummary(Part):
    """What is estimated lies between both ends in ``level`` of the cases."""

    low: float
    high: float
    level: float
    unit: Unit  # what was drawn: repetitions, or blocks of samples, which tell of this run alone

    @property
    def half(self) -> float:
        """Half its width: what stands behind a plus-minus."""
        return (self.high - self.low) / 2


def spread(repetitions: Sequence[Series]) -> Spread | None:
    """Return the intervals of one transfer in one phase; None for too few samples to tell any."""
    lag1 = intervals.lag1([series.rates for series in repetitions])
    if len(repetitions) >= FEWEST_REPETITIONS:
        attained = intervals.student([float(series.attained.mean()) for series in repetitions])
        return Spread(
            unit="repetitions",
            mean=intervals.student([series.mean for series in repetitions]),
            attainment=_share(attained),
            lag1=lag1,
        )
    block = _block(repetitions)
    if block is None:
        return None
    means, shares = _resampled(repetitions, block)
    attained = intervals.percentiles(shares)
    return Spread(
        unit="within this run",
        mean=intervals.percentiles(means),
        attainment=_share(attained),
        lag1=lag1,
        block=block,
    )


def difference(quiet: Mapping[int, Series], disturbed: Mapping[int, Series]) -> Difference | None:
    """Return what a disturbance did, in pairs of the same repetition; None for too little to tell."""
    both = sorted(quiet.keys() & disturbed.keys())
    if not both:
        return None
    pairs = [disturbed[number].mean - quiet[number].mean for number in both]
    value = sum(pairs) / len(pairs)
    if len(both) >= FEWEST_REPETITIONS:
        return Difference("repetitions", value, intervals.student(pairs))
    before, during = [quiet[number] for number in both], [disturbed[number] for number in both]
    block, other = _block(before), _block(during)
    if block is None or other is None:
        return None
    without, within = _resampled(before, block)[0], _resampled(during, other, apart=True)[0]
    return Difference("within this run", value, intervals.percentiles(within - without))


def over_repetitions(values: Sequence[float]) -> Interval | None:
    """Return the interval of something that each repetition has one of.

    None for too few of them, or if one has none (infinity).
    """
    if len(values) < FEWEST_REPETITIONS or not all(map(math.isfinite, values)):
        return None
    return intervals.student(values)


def interval(known: Interval, unit: Unit, digits: int) -> IntervalSummary:
    """Return an interval as it is told."""
    return IntervalSummary(
        low=round(known.low, digits),
        high=round(known.high, digits),
        level=intervals.LEVEL,
        unit=unit,
    )


def _block(repetitions: Sequence[Series]) -> int | None:
    """Return how long blocks have to be for each of the repetitions; None if there is too little to tell."""
    if not repetitions or any(len(series.rates) < intervals.FEWEST_SAMPLES for series in repetitions):
        return None
    return max(intervals.block_length(series.rates) for series in repetitions)


def _resampled(repetitions: Sequence[Series], block: int, apart: bool = False) -> tuple[Floats, Floats]:
    """Return the mean and the share of attained samples of each resample, all repetitions together.

    No block reaches from one repetition into the next. ``apart``: independent of those that are not.
    """
    import numpy as np

    columns = [(one.rates * one.seconds, one.seconds, one.attained.astype(float)) for one in repetitions]
    drawn = [intervals.resample(each, block, 2 * number + apart) for number, each in enumerate(columns)]
    bits, seconds, attained = (np.sum(parts, axis=0) for parts in zip(*drawn, strict=True))
    all_bits, all_seconds, all_attained = (
        sum(float(part.sum()) for part in parts) for parts in zip(*columns, strict=True)
    )
    counts = [len(one.rates) for one in repetitions]
    return (
        intervals.widened(bits / seconds, all_bits / all_seconds, block, min(counts)),
        intervals.widened(attained / sum(counts), all_attained / sum(counts), block, min(counts)),
    )


def _share(interval: Interval) -> Interval:
    return Interval(max(0.0, interval.low), min(1.0, interval.high))
