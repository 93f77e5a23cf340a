"""How well are a flow's numbers known?

Over repetitions, if there are enough of them; else from the samples, of this run alone (``intervals``). In
both cases the shortfall's interval is the mean's, told as shares of what is expected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from bench.analysis import statistics
from bench.analysis.statistics import Interval
from bench.observations.causes import Fine, Part

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from bench.analysis.statistics import Floats

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


class Spread(Part):
    """How well the numbers of a phase are known."""

    mean_bps: IntervalSummary
    attainment: IntervalSummary | None  # null without a guarantee
    shortfall: IntervalSummary | None  # null without a guarantee
    block_length: int | None  # samples of a block; null: nothing was resampled
    seed: int | None  # of what was drawn; null: nothing was
    lag1: Fine | None  # autocorrelation of neighbouring samples; null: they do not vary


class Effect(Part):
    """What a disturbance does to a flow: disturbed less quiet of the same repetition."""

    share: Fine  # of the expected goodput; negative: the flow got less
    interval: IntervalSummary
    threshold: float  # the least that matters, thresholds.effect of the scenario


def spread(repetitions: Sequence[Series], expected: float | None) -> Spread | None:
    """Return the intervals of one transfer in one phase; None for too few samples to tell any.

    ``expected`` bits per second are what it should get; None without a guarantee.
    """
    block, unit = None, _unit(repetitions)
    if unit == "repetitions":
        mean = statistics.student([series.mean for series in repetitions])
        attained = statistics.student([float(series.attained.mean()) for series in repetitions])
    else:
        block = _block(repetitions)
        if block is None:
            return None
        mean, attained = map(statistics.percentiles, _resampled(repetitions, block))
    missed = None if expected is None else Interval(1 - mean.high / expected, 1 - mean.low / expected)
    return Spread(
        mean_bps=interval(mean, unit, 1),
        attainment=None if expected is None else interval(_share(attained), unit, 6),
        shortfall=None if missed is None else interval(_share(missed), unit, 6),
        block_length=block,
        seed=None if block is None else statistics.SEED,
        lag1=statistics.lag1([series.rates for series in repetitions]),
    )


def effect(
    quiet: Mapping[int, Series], disturbed: Mapping[int, Series], expected: float, threshold: float
) -> Effect | None:
    """Return what a disturbance did to a flow that should get ``expected`` bits per second.

    In pairs of the same repetition; None for too little to tell.
    """
    found = _difference(quiet, disturbed)
    if found is None:
        return None
    value, (low, high), unit = found
    return Effect(
        share=value / expected,
        interval=interval(Interval(low / expected, high / expected), unit, 6),
        threshold=threshold,
    )


def _difference(
    quiet: Mapping[int, Series], disturbed: Mapping[int, Series]
) -> tuple[float, Interval, Unit] | None:
    """Return by how much the mean is another in one phase than in the other, bits per second."""
    both = sorted(quiet.keys() & disturbed.keys())
    if not both:
        return None
    pairs = [disturbed[number].mean - quiet[number].mean for number in both]
    value = sum(pairs) / len(pairs)
    if _unit(pairs) == "repetitions":
        return value, statistics.student(pairs), "repetitions"
    before, during = [quiet[number] for number in both], [disturbed[number] for number in both]
    block, other = _block(before), _block(during)
    if block is None or other is None:
        return None
    without, within = _resampled(before, block)[0], _resampled(during, other, apart=True)[0]
    return value, statistics.percentiles(within - without), "within this run"


def over_repetitions(values: Sequence[float | None], digits: int) -> IntervalSummary | None:
    """Return the interval of something that each repetition has one of.

    None for too few of them, or if one has none.
    """
    there = [value for value in values if value is not None]
    if len(values) < FEWEST_REPETITIONS or len(there) < len(values):
        return None
    return interval(statistics.student(there), "repetitions", digits)


def _unit(repetitions: Sequence[Series] | Sequence[float]) -> Unit:
    return "repetitions" if len(repetitions) >= FEWEST_REPETITIONS else "within this run"


def interval(known: Interval, unit: Unit, digits: int) -> IntervalSummary:
    """Return an interval as it is told."""
    return IntervalSummary(
        low=round(known.low, digits),
        high=round(known.high, digits),
        level=statistics.LEVEL,
        unit=unit,
    )


def _block(repetitions: Sequence[Series]) -> int | None:
    """Return how long blocks have to be for each of the repetitions; None if there is too little to tell."""
    if not repetitions or any(len(series.rates) < statistics.FEWEST_SAMPLES for series in repetitions):
        return None
    return max(statistics.block_length(series.rates) for series in repetitions)


def _resampled(repetitions: Sequence[Series], block: int, apart: bool = False) -> tuple[Floats, Floats]:
    """Return the mean and the share of attained samples of each resample, all repetitions together.

    No block reaches from one repetition into the next. ``apart``: independent of those that are not.
    """
    import numpy as np

    columns = [(one.rates * one.seconds, one.seconds, one.attained.astype(float)) for one in repetitions]
    drawn = [statistics.resample(each, block, 2 * number + apart) for number, each in enumerate(columns)]
    bits, seconds, attained = (np.sum(parts, axis=0) for parts in zip(*drawn, strict=True))
    all_bits, all_seconds, all_attained = (
        sum(float(part.sum()) for part in parts) for parts in zip(*columns, strict=True)
    )
    counts = [len(one.rates) for one in repetitions]
    return (
        statistics.widened(bits / seconds, all_bits / all_seconds, block, min(counts)),
        statistics.widened(attained / sum(counts), all_attained / sum(counts), block, min(counts)),
    )


def _share(interval: Interval) -> Interval:
    return Interval(*(min(1.0, max(0.0, end)) for end in interval))
