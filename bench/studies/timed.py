"""How long exchanges took that a study makes itself, and whether who made them was in time.

Times are seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from bench.analysis.statistics import ranked, supported
from bench.generators.generator import Exchange
from bench.recording.records import Took

ANSWERED = "answered"
PUNCTUAL = 0.99  # of the exchanges are to be in time; fewer, where there are few in all
# The generator may be late by this much, or by this share of what it measures.
LATE_S, LATE_SHARE = 0.001, 0.1


class Late(NamedTuple):
    """How late the generator sent."""

    p99_s: float
    told_s: float | None  # at a lower quantile, where exchanges are too few for p99; None: p99


def took(exchanges: Sequence[Exchange]) -> Took:
    """Return how long exchanges took; what was not answered took longer than all others."""
    times = sorted(
        one.answered_s - one.due_s
        for one in exchanges
        if one.answered_s is not None and one.status == ANSWERED
    )
    ordered = [*times, *[float("inf")] * (len(exchanges) - len(times))]
    p50, p99 = (ranked(ordered, share) if ordered else float("inf") for share in (0.5, 0.99))
    return Took(p50_s=_known(p50), p99_s=_known(p99), max_s=round(times[-1], 7) if times else None)


def _known(seconds: float) -> float | None:
    return None if seconds == float("inf") else round(float(seconds), 7)


def lost(exchanges: Sequence[Exchange]) -> dict[str, int]:
    """Return how many exchanges had no answer, by what became of them."""
    return dict(Counter(one.status for one in exchanges if one.status != ANSWERED))


def lateness(exchanges: Sequence[Exchange]) -> Late:
    """Return how late exchanges were sent."""
    late = sorted(one.sent_s - one.due_s for one in exchanges)
    told = supported(PUNCTUAL, len(late))
    return Late(round(ranked(late, 0.99), 7), None if told == PUNCTUAL else round(ranked(late, told), 7))


def too_late(late: Late, took: Took) -> float | None:
    """Return by how much the generator was late, if that is too much for what it measures; else None."""
    by = late.p99_s if late.told_s is None else late.told_s
    return by if by > max(LATE_S, LATE_SHARE * (took.p99_s or 0.0)) else None
