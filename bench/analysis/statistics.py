"""What many samples amount to: pure functions of arrays, without files, flows or thresholds of their own."""

from __future__ import annotations

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
