"""What ``summary.json`` tells of requests; see ``summary``.

Times are seconds from when an exchange was due. A percentile that is null is among those that were lost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import Field

from bench.analysis import promptness, spread
from bench.analysis.exchanges import DIGITS, IdlePath
from bench.analysis.latency import Latency, Took
from bench.analysis.phases import Phase
from bench.analysis.spread import IntervalSummary
from bench.observations.causes import Part, Topic
from testbed.scenario import Requests, Scenario
from testbed.scenario.words import Title


class TookSummary(Part):
    """What some exchanges amount to."""

    exchanges: int
    lost: int
    p50_s: float | None
    p90_s: float | None
    p99_s: float | None
    p999_s: float | None
    max_s: float | None  # of those that were answered
    lateness_p99_s: float  # the generator's own, when it sent
    lateness_max_s: float
    round_trip_s: float | None  # median of TCP's own, smoothed; null: not known
    doubtful: int  # exchanges that the machine may have held up
    cpu_busy: float | None  # busy share of all processors meanwhile, stolen time included
    # Which numbers decided that they did not hold; not in the file.
    missed: tuple[Topic, ...] = Field((), exclude=True)


class RequestsRepetitionSummary(TookSummary):
    """One kind of requests in one phase of one repetition."""

    repetition: int
    met: bool | None  # whether they met their thresholds; null without any


class RequestsPhaseSummary(TookSummary):
    """One kind of requests in one phase, all repetitions together."""

    met: bool | None  # whether every repetition met the thresholds; null without any
    repetitions: list[RequestsRepetitionSummary]
    # Of the percentile over the repetitions; null: too few of them, or one is among the lost.
    p50_interval_s: IntervalSummary | None
    p99_interval_s: IntervalSummary | None


class RequestsSummary(Part):
    """One kind of requests."""

    name: Title
    protocol: str
    connections: str
    rate: float  # exchanges a second
    size: int  # bytes of payload of a request
    answer: int  # and of its answer
    guarantee_bps: float | None  # what the asking pod was promised
    latency_s: float | None  # the most that 99 % may take; null: not judged
    lost_share: float | None  # the most that may be lost; null: not judged
    idle: list[IdlePath]
    phases: dict[Phase, RequestsPhaseSummary]


def build(
    scenario: Scenario, latencies: Iterable[Latency], idle: Mapping[str, Sequence[IdlePath]]
) -> list[RequestsSummary]:
    """Return what is told of each kind of requests, in the scenario's order."""
    observed: dict[str, list[Latency]] = {}
    for latency in latencies:
        observed.setdefault(latency.requests.label, []).append(latency)
    return [
        _requests(scenario, one, observed.get(one.label, []), idle.get(one.label, []))
        for one in scenario.requests
    ]


def _requests(
    scenario: Scenario, requests: Requests, observed: Sequence[Latency], idle: Sequence[IdlePath]
) -> RequestsSummary:
    guarantee = scenario.guarantee_of(requests)
    return RequestsSummary(
        name=requests.label,
        protocol=requests.protocol,
        connections=requests.connections,
        rate=requests.rate,
        size=requests.size,
        answer=requests.answer,
        guarantee_bps=None if guarantee is None else float(guarantee),
        latency_s=requests.latency,
        lost_share=requests.lost,
        idle=list(idle),
        phases={one.phase: _phase(one, one.overall) for one in observed if one.overall is not None},
    )


def _phase(latency: Latency, overall: Took) -> RequestsPhaseSummary:
    missed = promptness.missed(latency)
    took = {number: one for number, one in latency.repetitions.items() if one is not None}
    return RequestsPhaseSummary(
        **_took(overall),
        met=not any(missed.values()) if missed else None,
        missed=tuple(dict.fromkeys(topic for topics in missed.values() for topic in topics)),
        repetitions=[
            RequestsRepetitionSummary(
                **_took(one),
                repetition=number,
                met=not missed[number] if missed else None,
                missed=missed.get(number, ()),
            )
            for number, one in took.items()
        ],
        p50_interval_s=_interval([one.percentiles["p50"] for one in took.values()]),
        p99_interval_s=_interval([one.percentiles["p99"] for one in took.values()]),
    )


def _interval(percentiles: Sequence[float]) -> IntervalSummary | None:
    known = spread.over_repetitions(percentiles)
    return None if known is None else spread.interval(known, "repetitions", DIGITS)


def _took(took: Took) -> dict[str, Any]:
    """Return the fields of a ``TookSummary``."""
    return {
        "exchanges": took.exchanges,
        "lost": took.lost,
        **{f"{name}_s": _seconds(value) for name, value in took.percentiles.items()},
        "max_s": _seconds(took.longest_s),
        "lateness_p99_s": round(took.lateness_p99_s, DIGITS),
        "lateness_max_s": round(took.lateness_longest_s, DIGITS),
        "round_trip_s": _seconds(took.round_trip_s),
        "doubtful": took.doubtful,
        "cpu_busy": None if took.cpu_busy is None else round(took.cpu_busy, 6),
    }


def _seconds(value: float | None) -> float | None:
    return None if value is None or math.isinf(value) else round(value, DIGITS)
