"""Several runs of the same: what is in the middle, and how far apart they are."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from bench.studies.backends.index import Spread


def spread(values: Iterable[float]) -> Spread | None:
    """Return median, least and most; None of nothing."""
    found = sorted(values)
    if not found:
        return None
    return Spread(median=statistics.median(found), least=found[0], most=found[-1], count=len(found))


def percentile(values: Sequence[float], share: float) -> float:
    """Return the least value that at least this share of them do not exceed (nearest rank)."""
    ordered = sorted(values)
    rank = -(-len(ordered) * share // 1)
    return ordered[max(int(rank) - 1, 0)]
