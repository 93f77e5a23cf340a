"""Which samples are quiet and which disturbed, and which belong to neither.

A sample is *disturbed* if any part of it lies within a disturbance, otherwise *quiet*. A sample that begins
within its flow's warm-up is neither. A disturbance lasts from the moment its client was started for its
scenario's duration, so a client that was started late makes no quiet sample out of a disturbed one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from bench.recording.records import Repetition
from testbed.scenario import Scenario, Traffic

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Phase = Literal["quiet", "disturbed"]

PHASES: tuple[Phase, ...] = ("quiet", "disturbed")
WARM_UP = "warm-up"
# The scenario's rules leave every flow five intervals after its warm-up; the edges can cost two of them.
FEWEST_INTERVALS = 5
FEWEST_SAMPLES = 3


class Span(NamedTuple):
    """A stretch of time, seconds since the repetition's beginning; the end does not belong to it."""

    start: float
    end: float


def span_of(traffic: Traffic, repetition: Repetition) -> Span:
    """Return when a transfer really took place; as planned, if the record does not know."""
    transfer = repetition.transfers.get(traffic.label)
    start = traffic.start if transfer is None else transfer.started_s
    return Span(start, start + traffic.duration)


def disturbances(scenario: Scenario, repetition: Repetition) -> list[Span]:
    """Return the stretches in which anything disturbs, merged where they overlap, in order."""
    return merge(span_of(disturbance, repetition) for disturbance in scenario.disturbances)


def merge(spans: Iterable[Span]) -> list[Span]:
    """Return disjoint spans in order that cover the same time."""
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return merged


def classify(
    starts: NDArray[np.float64], ends: NDArray[np.float64], judged_from: float, disturbed: Sequence[Span]
) -> NDArray[np.str_]:
    """Return ``quiet``, ``disturbed`` or ``warm-up`` for each sample of one transfer.

    ``judged_from`` is when its warm-up is over; all times are seconds on the same clock.
    """
    import numpy as np

    touched = np.zeros(len(starts), dtype=bool)
    for span in disturbed:
        touched |= (starts < span.end) & (ends > span.start)
    return np.where(starts < judged_from, WARM_UP, np.where(touched, "disturbed", "quiet"))


def required(judged: Span, disturbed: Sequence[Span], interval_s: float) -> list[Phase]:
    """Return the phases that a transfer judged during ``judged`` must have samples of.

    A disturbance must be seen unless all of them together touch less than half a sample. The time between
    disturbances counts as a phase only if it is long enough to hold samples of its own.
    """
    seconds = sum(max(0.0, min(judged.end, span.end) - max(judged.start, span.start)) for span in disturbed)
    phases: list[Phase] = []
    # A hair less than five intervals still is five: the times are sums of floats.
    if judged.end - judged.start - seconds > (FEWEST_INTERVALS - 0.01) * interval_s:
        phases.append("quiet")
    if seconds >= interval_s / 2:
        phases.append("disturbed")
    return phases
