"""Did requests take no longer than they may, and were no more of them lost - and does this run prove it?

Whatever the machine does by itself, it makes latencies longer, never shorter. So a threshold that was met was
met; a miss counts only if it was not the machine's: the processors were not saturated, the miss is one
without the exchanges that the machine held up, and the generator itself was not late when it sent.

A generator that is late makes numbers that are not the path's, whether they are judged or not. So a run is
invalid in which it was late by more than a tenth of what is reported, unless that is as little as a machine
can be held to at so many exchanges a second.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Set
from typing import NamedTuple

from bench.analysis import excuses
from bench.analysis.latency import Latency, Took
from bench.analysis.phases import FEWEST_SAMPLES
from bench.observations.causes import Cause, Kind, Topic
from testbed.scenario import Requests
from testbed.scenario.units import format_seconds, format_share

# Of the latency that is reported; so much the generator itself may add to it.
LATE_SHARE = 0.1
# A processor that sleeps takes this long to wake, and this is what one can hold a machine to: the lateness,
# seconds, that is no fault up to so many exchanges a second. Beyond them there is none.
ALLOWED = {100: 0.0006, 1000: 0.0003}


class _Miss(NamedTuple):
    """A threshold that some exchanges miss."""

    text: str
    observed: float | None  # None: among the lost
    required: float


def causes(latency: Latency) -> Iterator[Cause]:
    """Yield why requests do not hold in one phase, or prove nothing, repetition by repetition."""
    for number, took in latency.repetitions.items():
        count = took.exchanges if took else 0
        if took is None or count < FEWEST_SAMPLES:
            text = f"{count} exchanges are too few to tell (at least {FEWEST_SAMPLES})"
            yield _cause(latency, "measurement", text, number, count, FEWEST_SAMPLES, "exchanges")
            continue
        if too_late(latency.requests, took):
            most = LATE_SHARE * took.judged_s
            text = (
                f"the generator itself was up to {format_seconds(took.lateness_p99_s)} late in 99 % of the "
                f"exchanges, more than a tenth of the {format_seconds(took.judged_s)} that they took: "
                "the machine was too slow for these requests"
            )
            yield _cause(latency, "machine", text, number, took.lateness_p99_s, most, "generator")
        if misses := _misses(latency.requests, took):
            text = " and ".join(miss.text for miss in misses.values())
            excuse = _excuse(latency.requests, took, misses.keys())
            kind: Kind = "machine" if excuse else "promise"
            first = next(iter(misses.values()))
            yield _cause(latency, kind, text + excuse, number, first.observed, first.required, *misses)


def missed(latency: Latency) -> dict[int, tuple[Topic, ...]]:
    """Return of each repetition with exchanges which thresholds were missed; nothing without thresholds."""
    if not latency.requests.judged:
        return {}
    return {
        number: tuple(_misses(latency.requests, took))
        for number, took in latency.repetitions.items()
        if took is not None
    }


def too_late(requests: Requests, took: Took) -> bool:
    """Tell whether what is reported is the generator's own lateness more than it may be."""
    allowed = next((seconds for rate, seconds in ALLOWED.items() if requests.rate <= rate), 0.0)
    return took.lateness_p99_s > max(LATE_SHARE * took.judged_s, allowed)


def _cause(
    latency: Latency,
    kind: Kind,
    text: str,
    repetition: int,
    observed: float | None,
    required: float,
    *topics: Topic,
) -> Cause:
    which = f", repetition-{repetition}" if len(latency.repetitions) > 1 else ""
    return Cause(
        kind=kind,
        text=f"{latency.requests.label}, {latency.phase}{which}: {text}",
        flow=latency.requests.label,
        phase=latency.phase,
        repetition=repetition,
        observed=observed,
        required=required,
        topics=topics,
    )


def _misses(requests: Requests, took: Took) -> Mapping[Topic, _Miss]:
    """Return the thresholds that exchanges miss, by their names in the scenario."""
    found: dict[Topic, _Miss] = {}
    if requests.latency is not None and took.judged_s > requests.latency:
        finite = math.isfinite(took.judged_s)
        what = f"99 % took up to {format_seconds(took.judged_s)}" if finite else "over 1 % were lost"
        text = f"{what} (at most {format_seconds(requests.latency)} for 99 %)"
        found["latency"] = _Miss(text, took.judged_s if finite else None, requests.latency)
    if requests.lost is not None and took.lost_share > requests.lost:
        text = (
            f"{took.lost} of {took.exchanges} were lost, which is {format_share(took.lost_share)} "
            f"(at most {format_share(requests.lost)})"
        )
        found["lost"] = _Miss(text, took.lost_share, requests.lost)
    return found


def _excuse(requests: Requests, took: Took, missed: Set[Topic]) -> str:
    """Return why a miss may be the machine's, to be added to its words; empty if it is not."""
    if excuse := excuses.busy(took.cpu_busy):
        return excuse
    if missed == {"latency"} and took.lateness_p99_s > LATE_SHARE * took.judged_s:
        late = format_seconds(took.lateness_p99_s)
        return f"; the generator itself was up to {late} late, so it may be the machine"
    if not took.doubtful:
        return ""
    few = took.sound is None or took.sound.exchanges < excuses.FEWEST_SOUND * took.exchanges
    if few or missed.isdisjoint(_misses(requests, took.sound or took)):
        return (
            f"; during {took.doubtful} exchanges the machine stood still, was saturated, or lacked what its "
            "host gave to others, so it may be the machine"
        )
    return ""
