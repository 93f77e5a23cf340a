"""What samples amount to, and how well a mean is known: pure functions of arrays, without files or flows.

Intervals are of two kinds, for two questions. Where something was repeated, the repetitions are independent
of each other, and Student's interval says what other repetitions would give. Samples of one run are not
independent: a shaper repays what a late sample lacked, so one that is low comes before one that is high. They
are resampled in blocks, which keeps that, and the interval speaks of this run alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

LEVEL = 0.95  # of the intervals
# The same draws at every analysis of the same samples. Any number does; this is the method's year.
SEED = 1992
# With another seed the ends of an interval are elsewhere by less than a twentieth of its width.
RESAMPLES = 1000
# Fewer samples do not hold blocks enough to tell anything.
FEWEST_SAMPLES = 10
# So many have to be beyond a quantile: of fewer, a single one that the machine spoiled moves it.
FEWEST_BEYOND = 10


def mean(values: Floats, seconds: Floats) -> float:
    """Return the mean of rates weighted by time: all bits over all seconds.

    Both arrays have one entry a sample. Raises ValueError if together they last no time.
    """
    total = float(seconds.sum())
    if total <= 0:
        raise ValueError("a mean needs samples that last some time")
    return float((values * seconds).sum()) / total


def p01(values: Floats) -> float:
    """Return the first percentile, linear between samples (numpy's default, Hyndman and Fan's type 7)."""
    import numpy as np

    if not len(values):
        raise ValueError("a percentile needs samples")
    return float(np.quantile(values, 0.01))


def supported(share: float, count: int) -> float:
    """Return the highest quantile, at most ``share``, that ``FEWEST_BEYOND`` of so many samples are beyond.

    It is 0, the least of all, where there are no more samples than that.
    """
    return min(share, max(0.0, 1 - FEWEST_BEYOND / count)) if count else 0.0


def attainment(values: Floats, threshold: float) -> float:
    """Return the share of samples at or above ``threshold``, 0 to 1."""
    if not len(values):
        raise ValueError("attainment needs samples")
    return float((values >= threshold).mean())


def overlaps(starts: Floats, ends: Floats, other_starts: Floats, other_ends: Floats) -> Floats:
    """Return for each interval the seconds it shares with all of the others, which are disjoint."""
    import numpy as np

    shared = np.minimum.outer(ends, other_ends) - np.maximum.outer(starts, other_starts)
    return np.asarray(np.clip(shared, 0.0, None).sum(axis=1), dtype=np.float64)


def percentile(values: Sequence[float] | Floats, share: float) -> float:
    """Return ``ranked`` of values in any order."""
    return ranked(sorted(values), share)


def ranked(ordered: Sequence[float] | Floats, share: float) -> float:
    """Return the smallest of ordered values that at least this share of them does not exceed.

    That is one that was measured, be it infinite (nearest rank; Hyndman and Fan's type 1).
    """
    if not len(ordered):
        raise ValueError("a percentile needs values")
    # A hair less: 0.99 of 100 is 99, and not the next whole number above 99.00000000000001.
    rank = math.ceil(share * len(ordered) - 1e-9)
    return float(ordered[max(rank, 1) - 1])


class Interval(NamedTuple):
    """Both ends; what is estimated lies within in ``LEVEL`` of the cases."""

    low: float
    high: float


class Welch(NamedTuple):
    """A difference of two means."""

    difference: float
    interval: Interval


def student(values: Sequence[float]) -> Interval:
    """Return Student's interval of a mean, ``mean -+ t s / sqrt(n)``; NIST/SEMATECH e-Handbook 1.3.5.2.

    Raises ValueError for fewer than two values.
    """
    mean, variance = _moments(values)
    half = _quantile(len(values) - 1) * math.sqrt(variance / len(values))
    return Interval(mean - half, mean + half)


def welch(values: Sequence[float], others: Sequence[float]) -> Welch:
    """Return by how much the mean of ``others`` is above that of ``values``, whatever their variances.

    Welch, "The generalization of Student's problem when several different population variances are
    involved", Biometrika 34 (1947). Raises ValueError for fewer than two values on either side.
    """
    (mean, variance), (other_mean, other_variance) = _moments(values), _moments(others)
    error, other_error = variance / len(values), other_variance / len(others)
    difference = other_mean - mean
    if error + other_error == 0:
        return Welch(difference, Interval(difference, difference))
    freedom = (error + other_error) ** 2 / (error**2 / (len(values) - 1) + other_error**2 / (len(others) - 1))
    half = _quantile(freedom) * math.sqrt(error + other_error)
    return Welch(difference, Interval(difference - half, difference + half))


def resample(series: Sequence[Floats], block: int, stream: int = 0) -> list[Floats]:
    """Return the sums of each series over ``RESAMPLES`` resamples in circular blocks of ``block`` samples.

    Politis and Romano, "A circular block-resampling procedure for stationary data", in LePage and Billard,
    Exploring the Limits of Bootstrap (1992): blocks begin anywhere, the end is followed by the beginning.
    The series have one entry a sample, in order of time, and are resampled together; what is resampled apart
    from each other takes another ``stream``. Raises ValueError for no samples.
    """
    return sums(series, draw(len(series[0]), block, stream), block)


def draw(samples: int, block: int, stream: int = 0) -> Integers:
    """Return where the blocks of each resample begin: a row a resample, a column a block.

    Raw output of a generator, for which numpy promises that it stays the same in every version (NEP 19).
    """
    import numpy as np

    if not samples:
        raise ValueError("resampling needs samples")
    raw = np.random.PCG64((SEED, stream)).random_raw((RESAMPLES, math.ceil(samples / block)))
    return np.asarray(raw % np.uint64(samples), dtype=np.int64)


def sums(series: Sequence[Floats], starts: Integers, block: int) -> list[Floats]:
    """Return the sums over the resamples whose blocks begin at ``starts``; the last fills what is left.

    By differences of cumulative sums, so that it takes as long as there are blocks, not samples.
    """
    import numpy as np

    samples, blocks = len(series[0]), starts.shape[1]
    ends = starts + np.array([block] * (blocks - 1) + [samples - block * (blocks - 1)])
    found = []
    for values in series:
        total = np.concatenate([[0.0], np.cumsum(np.concatenate([values, values]))])
        found.append((total[ends] - total[starts]).sum(axis=1))
    return found


def widened(resampled: Floats, mean: float, block: int, samples: int) -> Floats:
    """Return resampled means further away from the ``mean`` of all samples: as far as it should be.

    Blocks vary around that mean, of which they are a part, and so by a share of ``block / samples`` of the
    variance too little (exactly that for independent samples). Without it, 95 % intervals of 44 samples cover
    83 to 92 % where lag 1 is 0.5 to -0.6; with it 86 to 94 %.
    """
    return mean + (resampled - mean) * math.sqrt(samples / (samples - block))


def percentiles(resampled: Floats) -> Interval:
    """Return the interval between the outer percentiles of resampled means (Efron 1979)."""
    import numpy as np

    low, high = np.quantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high))


def block_length(values: Floats) -> int:
    """Return how many samples a block should have, from the samples' own autocorrelation.

    Politis and White, "Automatic block-length selection for the dependent bootstrap", Econometric Reviews 23
    (2004), for the circular bootstrap, with the correction of Patton, Politis and White, ibid. 28 (2009);
    rounded up. At least the cube root of their number, the rate at which the best length grows: few samples
    do not show every autocorrelation that they have.
    """
    count = len(values)
    least = math.ceil(math.cbrt(count))
    most = math.ceil(min(3 * math.sqrt(count), count / 3))
    kept = max(5, int(math.log10(count)))
    largest = min(math.ceil(math.sqrt(count)) + kept, count - 2)
    covariances, correlations = _correlations(values, largest)
    if covariances[0] <= 0:
        return least
    # From the first lag on after which ``kept`` autocorrelations in a row mean nothing.
    limit = 2 * math.sqrt(math.log10(count) / count)
    quiet = (
        lag
        for lag in range(largest - kept + 1)
        if all(abs(one) < limit for one in correlations[lag : lag + kept])
    )
    lags = min(2 * max(next(quiet, largest), 1), largest)
    windows = [min(1.0, 2 * (1 - lag / lags)) for lag in range(lags + 1)]
    slope = sum(2 * windows[lag] * lag * covariances[lag] for lag in range(1, lags + 1))
    spectrum = covariances[0] + sum(2 * windows[lag] * covariances[lag] for lag in range(1, lags + 1))
    if abs(spectrum) < 1e-12 * covariances[0]:
        return most
    best = math.cbrt(2 * slope**2 / (4 / 3 * spectrum**2) * count)
    return max(least, math.ceil(min(best, most)))


def lag1(series: Sequence[Floats]) -> float | None:
    """Return the autocorrelation of neighbouring samples, of all series together, each around its own mean.

    None where nothing varies.
    """
    together, alone = 0.0, 0.0
    for values in series:
        rest = values - values.mean()
        together += float((rest[1:] * rest[:-1]).sum())
        alone += float((rest * rest).sum())
    return together / alone if alone > 0 else None


def _correlations(values: Floats, largest: int) -> tuple[list[float], list[float]]:
    """Return autocovariances and autocorrelations for the lags from 0 to ``largest``.

    Not by a product of vectors: what computes that differs between processors, in the last digit.
    """
    rest = values - values.mean()
    covariances, correlations = [], []
    for lag in range(largest + 1):
        product = float((rest[lag:] * rest[: len(rest) - lag]).sum())
        early, late = rest[: len(rest) - lag - 1], rest[lag + 1 :]
        scale = math.sqrt(float((early * early).sum()) * float((late * late).sum()))
        covariances.append(product / len(rest))
        correlations.append(product / scale if scale > 0 else 0.0)
    return covariances, correlations


def _moments(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and the variance of a sample."""
    if len(values) < 2:
        raise ValueError("an interval needs at least two values")
    mean = math.fsum(values) / len(values)
    return mean, math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _quantile(freedom: float) -> float:
    """Return the quantile of Student's t that ``LEVEL`` lies within."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + LEVEL) / 2))
