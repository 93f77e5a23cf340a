"""What many samples amount to: pure functions of arrays, without files, flows or thresholds of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


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
