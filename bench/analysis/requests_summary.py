"""What ``summary.json`` tells of requests; see ``summary``.

Times are seconds from when an exchange was due. A percentile that is null is among those that were lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bench.analysis import promptness, spread
from bench.analysis.exchanges import DIGITS, IdlePath
from bench.analysis.latency import Latency, Took
from bench.analysis.phases import Phase
from bench.analysis.spread import IntervalSummary
from bench.observations.causes import Part
from testbed.scenario import Requests, Scenario
from testbed.scenario.words import Title


class RequestsRepetitionSummary(Took):
    """One kind of requests in one phase of one repetition."""

    repetition: int
    met: bool | None  # whether they met their thresholds; null without any


class RequestsPhaseSummary(Took):
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
    topics = tuple(dict.fromkeys(topic for topics in missed.values() for topic in topics))
    return RequestsPhaseSummary(
        **dict(overall) | {"missed": topics},
        met=not any(missed.values()) if missed else None,
        repetitions=[
            RequestsRepetitionSummary(
                **dict(one) | {"missed": missed.get(number, ())},
                repetition=number,
                met=not missed[number] if missed else None,
            )
            for number, one in took.items()
        ],
        p50_interval_s=spread.over_repetitions([one.p50_s for one in took.values()], DIGITS),
        p99_interval_s=spread.over_repetitions([one.p99_s for one in took.values()], DIGITS),
    )
