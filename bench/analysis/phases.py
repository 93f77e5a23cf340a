"""Which samples are quiet and which disturbed, by what, and which belong to neither.

A sample is *disturbed* if any part of it lies within a disturbance, otherwise *quiet*. A sample that begins
within its flow's warm-up is neither. A disturbance lasts from the moment its client was started for its
scenario's duration, so a client that was started late makes no quiet sample out of a disturbed one.

Each set of disturbances that are on at the same time is a phase of its own: a mean over two of them would be
that of neither. A sample at the edge of two such phases belongs to the later one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from bench.recording.records import Repetition
from testbed.scenario import Scenario, Transfer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# "quiet", "disturbed", or, if not all disturbances are on at the same time, "disturbed by NAME and NAME".
Phase = str
Labels = frozenset[str]  # of the disturbances that are on at the same time

QUIET: Phase = "quiet"
DISTURBED: Phase = "disturbed"
WARM_UP = "warm-up"
# The scenario's rules leave every flow five intervals after its warm-up; the edges can cost two of them.
FEWEST_INTERVALS = 5
FEWEST_SAMPLES = 3


class Span(NamedTuple):
    """A stretch of time, seconds since the repetition's beginning; the end does not belong to it."""

    start: float
    end: float


class Disturbed(NamedTuple):
    """A stretch of time in which the same disturbances are on, and the phase it belongs to."""

    start: float
    end: float
    phase: Phase = DISTURBED


def span_of(transfer: Transfer, repetition: Repetition) -> Span:
    """Return when a transfer really took place; as planned, if the record does not know."""
    made = repetition.transfers.get(transfer.label)
    start = transfer.start if made is None else made.started_s
    return Span(start, start + transfer.duration)


def disturbances(scenario: Scenario, transfer: Transfer, repetition: Repetition) -> list[Disturbed]:
    """Return the stretches in which anything disturbs a transfer, in order, disjoint.

    What is on together by accident, because one began late, or for hardly a sample, is no phase of its own:
    it belongs to the one that is most like it.
    """
    phases = _phases(scenario, _within(scenario, transfer))
    spans = {one.label: span_of(one, repetition) for one in scenario.disturbances}
    return list(_disturbed(tuple(spans.items()), tuple(phases.items())))


def planned(scenario: Scenario) -> list[Disturbed]:
    """Return the stretches in which anything is to disturb, in order, disjoint."""
    phases = _phases(scenario, Span(0, scenario.duration))
    return list(_disturbed(tuple(_planned(scenario).items()), tuple(phases.items())))


@functools.lru_cache(maxsize=64)
def _disturbed(
    spans: tuple[tuple[str, Span], ...], phases: tuple[tuple[Labels, Phase], ...]
) -> tuple[Disturbed, ...]:
    """Return when any of these is on, and the phase of each stretch.

    Kept for a while: a hundred flows that the same disturbs ask for the same.
    """
    return tuple(_joined(Disturbed(*span, _nearest(on, dict(phases))) for span, on in _cut(dict(spans))))


def classify(
    starts: NDArray[np.float64], ends: NDArray[np.float64], judged_from: float, disturbed: Sequence[Disturbed]
) -> NDArray[np.str_]:
    """Return the phase, or ``warm-up``, of each sample of one transfer.

    ``judged_from`` is when its warm-up is over; all times are seconds on the same clock.
    """
    import numpy as np

    found = np.full(len(starts), QUIET, dtype=object)
    for stretch in disturbed:
        found[(starts < stretch.end) & (ends > stretch.start)] = stretch.phase
    found[starts < judged_from] = WARM_UP
    return found.astype(np.str_)


def required(judged: Span, disturbed: Sequence[Disturbed], interval_s: float) -> list[Phase]:
    """Return the phases that a transfer judged during ``judged`` must have samples of: quiet, then by time.

    A disturbance must be seen unless all its stretches together touch less than half a sample. The time
    between disturbances counts as a phase only if it is long enough to hold samples of its own.
    """
    seconds: dict[Phase, float] = {}
    for stretch in disturbed:
        seconds[stretch.phase] = seconds.get(stretch.phase, 0.0) + _shared(judged, stretch)
    phases = [phase for phase, length in seconds.items() if length >= interval_s / 2]
    quiet = judged.end - judged.start - math.fsum(seconds.values())
    return [QUIET, *phases] if quiet > _long(interval_s) else phases


def _phases(scenario: Scenario, within: Span) -> dict[Labels, Phase]:
    """Return how the sets of disturbances are called that are on long enough to be seen ``within`` a time.

    If none is, it is the longest.
    """
    interval_s = scenario.measurement.interval
    seconds: dict[Labels, float] = {}
    everywhere: dict[Labels, float] = {}
    for span, on in _cut(_planned(scenario)):
        seconds[on] = seconds.get(on, 0.0) + _shared(within, span)
        everywhere[on] = everywhere.get(on, 0.0) + span.end - span.start
    if sum(length > _long(interval_s) for length in everywhere.values()) <= 1:
        return {frozenset(): DISTURBED}  # to which all belong
    seen = [on for on, length in seconds.items() if length > _long(interval_s)]
    if not seen and seconds:
        seen = [max(seconds, key=lambda on: seconds[on])]
    order = [one.label for one in scenario.disturbances]
    return {on: _called(sorted(on, key=order.index)) for on in seen}


def _called(labels: Sequence[str]) -> Phase:
    *others, last = labels
    return f"{DISTURBED} by {', '.join(others)} and {last}" if others else f"{DISTURBED} by {last}"


def _nearest(on: Labels, phases: Mapping[Labels, Phase]) -> Phase:
    """Return the phase of the set that differs in the fewest disturbances; the earliest of several."""
    return phases[min(phases, key=lambda known: len(known ^ on))]


def _within(scenario: Scenario, transfer: Transfer) -> Span:
    """Return the time in which a transfer is judged, as planned: a disturbance has no warm-up."""
    warm_up = 0.0 if transfer in scenario.disturbances else scenario.measurement.warm_up
    return Span(transfer.start + warm_up, transfer.end)


def _planned(scenario: Scenario) -> dict[str, Span]:
    return {one.label: Span(one.start, one.end) for one in scenario.disturbances}


def _cut(spans: Mapping[str, Span]) -> Iterator[tuple[Span, Labels]]:
    """Yield every stretch of time in which the same ones are on, if any are, in order."""
    begin: dict[float, set[str]] = {}
    end: dict[float, set[str]] = {}
    for label, span in spans.items():
        begin.setdefault(span.start, set()).add(label)
        end.setdefault(span.end, set()).add(label)
    on: Labels = frozenset()
    for moment, following in pairwise(sorted(begin.keys() | end.keys())):
        on = (on | begin.get(moment, set())) - end.get(moment, set())
        if on:
            yield Span(moment, following), on


def _joined(stretches: Iterator[Disturbed]) -> list[Disturbed]:
    """Return the stretches with those made one that follow each other in one phase."""
    joined: list[Disturbed] = []
    for stretch in stretches:
        if joined and joined[-1].end == stretch.start and joined[-1].phase == stretch.phase:
            joined[-1] = joined[-1]._replace(end=stretch.end)
        else:
            joined.append(stretch)
    return joined


def _shared(span: Span, other: Span | Disturbed) -> float:
    return max(0.0, min(span.end, other.end) - max(span.start, other.start))


def _long(interval_s: float) -> float:
    """Return above how many seconds samples are enough: a hair less than five intervals still is five."""
    return (FEWEST_INTERVALS - 0.01) * interval_s
