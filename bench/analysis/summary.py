"""``summary.json``: what a recording shows, for other tools.

The contract is versioned. Fields may be added within a version; renaming or removing one makes a new version.
Units are in the names: ``_bps`` is payload bits per second (the guarantee: as the scenario counts it),
``_s`` seconds; shares are between 0 and 1. ``null`` means that there is no such thing here, never zero.

It is what the analysis found, model by model: what samples amount to is ``flow_phases.Measured``, in memory
and in the file, and so on. Figures are rounded when they are written and nowhere before.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from bench.analysis import spread, verdict
from bench.analysis.exchanges import DIGITS, IdlePath
from bench.analysis.flow_phases import FlowPhase, Measured
from bench.analysis.latency import Latency, Took
from bench.analysis.machine import Machine
from bench.analysis.phases import QUIET, Phase
from bench.analysis.samples import Role, role_of
from bench.analysis.spread import Effect, IntervalSummary, Spread
from bench.analysis.verdict import Outcome, Verdict
from bench.observations.causes import Cause, Fine, Millis, Part, Rate, Topic
from bench.recording import atomic
from bench.recording.records import Foreseen, RunRecord
from testbed.scenario import Requests, Scenario, Traffic
from testbed.scenario.goodput import expected_goodput_of
from testbed.scenario.words import Name, Title


class RepetitionSummary(Measured):
    """One transfer in one phase of one repetition."""

    repetition: int
    met: bool | None = None  # whether it met both thresholds, and its ceiling; null without a guarantee


class PhaseSummary(Measured):
    """One transfer in one phase, all repetitions together."""

    shortfall: Fine | None  # share of the expected goodput that the mean misses; null without a guarantee
    met: bool | None  # whether every repetition did; null without a guarantee
    repetitions: list[RepetitionSummary]
    intervals: Spread | None = None  # null: too few samples to tell
    effect: Effect | None = None  # of a disturbed phase; null: without a guarantee, or too few samples

    @property
    def judged(self) -> Measured:
        """What the phase was judged by: the worst of the repetitions that missed, otherwise all together."""
        missed = [one for one in self.repetitions if one.met is False]
        if over := [one for one in missed if "ceiling" in one.missed]:
            return max(over, key=lambda one: one.mean_bps)
        return min(missed, key=lambda one: one.mean_bps) if missed else self


class FlowSummary(Part):
    """One flow or disturbance."""

    name: Title
    role: Role
    protocol: str
    guarantee_bps: Rate | None
    expected_goodput_bps: Rate | None
    phases: dict[Phase, PhaseSummary]


class CalibrationSummary(Part):
    """What the guaranteed flows' paths carried without shaping, all at once, when it was least."""

    total_bps: Rate | None
    flows_bps: dict[str, Rate]
    before_bps: Rate | None = None  # in all, before the traffic; null: not made, or not recorded
    after_bps: Rate | None = None
    # By scale. Not in the file where nothing was foreseen, as in those of earlier versions.
    foreseen: list[Foreseen] | None = Field(None, exclude_if=lambda known: known is None)


class SecondsSummary(Part):
    """How long the parts took."""

    up: Millis
    calibration: Millis
    traffic: Millis
    down: Millis
    analysis: Millis


class Summary(Part):
    """The whole file."""

    # In the file it is called "schema", which pydantic's models cannot have as a name.
    schema_version: Literal[1] = Field(1, alias="schema")
    run_id: str
    started_at: str
    # The run that proved nothing because of the machine, and led to this one. Only in such a file.
    retry_of: str | None = Field(None, exclude_if=lambda run: run is None)
    scenario: str
    title: Title
    provider: str
    orchestrator: str
    enforcement: str
    verdict: Outcome
    reasons: list[str]
    causes: list[Cause] = Field([])  # one for each reason, in the same order
    notes: list[str]
    flows: list[FlowSummary]
    # Not in the file without any, so that summaries of earlier versions stay what they are.
    requests: list[RequestsSummary] = Field([], exclude_if=lambda known: not known)
    calibration: CalibrationSummary | None
    machine: list[Machine] = Field([])
    seconds: SecondsSummary

    def analysed(self, seconds: float) -> Summary:
        """Return the same summary with the time its analysis took."""
        took = self.seconds.model_copy(update={"analysis": seconds})
        return self.model_copy(update={"seconds": took})


def build(
    scenario: Scenario,
    record: RunRecord,
    observations: Iterable[FlowPhase],
    judged: Verdict,
    machines: Iterable[Machine] = (),
    requests: Sequence[RequestsSummary] = (),
) -> Summary:
    """Put together what the recording shows.

    ``seconds.analysis`` is 0 until ``analysed`` sets it.
    """
    return Summary(
        run_id=record.run_id,
        started_at=record.started_at,
        retry_of=record.retry_of,
        scenario=scenario.name,
        title=scenario.title,
        provider=record.provider,
        orchestrator=record.orchestrator,
        enforcement=scenario.kept_by,
        verdict=judged.outcome,
        reasons=judged.reasons,
        causes=judged.causes,
        notes=[*judged.notes, *_once(record)],
        flows=_flows(scenario, observations, judged.causes),
        requests=list(requests),
        calibration=_calibration(record),
        machine=list(machines),
        seconds=SecondsSummary(**dict(record.seconds), analysis=0.0),
    )


def _once(record: RunRecord) -> list[str]:
    once = len(record.repetitions) == 1
    return ["one repetition: nothing is known from run to run"] if once else []


def _flows(
    scenario: Scenario, observations: Iterable[FlowPhase], causes: Sequence[Cause]
) -> list[FlowSummary]:
    observed: dict[str, dict[Phase, FlowPhase]] = {}
    for one in observations:
        observed.setdefault(one.flow, {})[one.phase] = one
    return [_flow(scenario, one, observed.get(one.label, {}), causes) for one in scenario.traffic]


def _flow(
    scenario: Scenario, traffic: Traffic, phases: dict[Phase, FlowPhase], causes: Sequence[Cause]
) -> FlowSummary:
    role = role_of(scenario, traffic)
    guarantee, expected = scenario.guarantee_of(traffic), expected_goodput_of(scenario, traffic)
    guaranteed = role == "guaranteed"
    return FlowSummary(
        name=traffic.label,
        role=role,
        protocol=traffic.protocol,
        guarantee_bps=guarantee if guaranteed else None,
        expected_goodput_bps=expected if guaranteed else None,
        phases={
            name: _phase(scenario, one, one.overall, phases.get(QUIET), causes)
            for name, one in phases.items()
            if one.overall is not None
        },
    )


def _phase(
    scenario: Scenario, one: FlowPhase, overall: Measured, quiet: FlowPhase | None, causes: Sequence[Cause]
) -> PhaseSummary:
    missed = verdict.missed(scenario, one, causes)
    effect = None
    if quiet is not None and quiet is not one and one.expected_bps is not None:
        effect = spread.effect(quiet.series, one.series, one.expected_bps, scenario.thresholds.effect)
    return PhaseSummary(
        **_numbers(RepetitionSummary, overall, one.repetitions, missed),
        shortfall=one.shortfall,
        intervals=spread.spread(list(one.series.values()), one.expected_bps),
        effect=effect,
    )


def _numbers(
    kind: type[RepetitionSummary] | type[RequestsRepetitionSummary],
    overall: Measured | Took,
    repetitions: Mapping[int, Measured | Took | None],
    missed: Mapping[int, tuple[Topic, ...]],
) -> dict[str, Any]:
    """Return what is told of every phase: its numbers, what it missed, and both of each repetition."""
    topics = tuple(dict.fromkeys(topic for each in missed.values() for topic in each))
    return {
        **dict(overall) | {"missed": topics},
        "met": not topics if missed else None,
        "repetitions": [
            kind(
                **dict(one) | {"missed": missed.get(number, ())},
                repetition=number,
                met=not missed[number] if missed else None,
            )
            for number, one in repetitions.items()
            if one is not None
        ],
    }


def _calibration(record: RunRecord) -> CalibrationSummary | None:
    if record.calibration is None:
        return None
    rates = {name: round(rate, 1) for name, rate in record.calibration.bits_per_second.items()}
    totals = [round(math.fsum(one.bits_per_second.values()), 1) for one in record.calibrations]
    return CalibrationSummary(
        total_bps=round(math.fsum(rates.values()), 1) if rates else None,
        flows_bps=rates,
        before_bps=totals[0] if totals else None,
        after_bps=totals[-1] if len(totals) > 1 else None,
        foreseen=_foreseen(record),
    )


def _foreseen(record: RunRecord) -> list[Foreseen] | None:
    """Return what the first calibration that foresaw anything did."""
    found = next((one.foreseen for one in record.calibrations if one.foreseen), None)
    if found is None:
        return None
    return [one.model_copy(update={"margin": round(one.margin, 3)}) for one in found]


def render(summary: Summary) -> str:
    """Return the text of ``summary.json``."""
    data = summary.model_dump(mode="json", by_alias=True)
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def read(file: Path) -> Summary:
    """Read a ``summary.json``. Raises StoredError, for any other version too."""
    with atomic.remedy(f"make it again: ./invokew figures {shlex.quote(str(file.parent))}"):
        return atomic.read(file, Summary)


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
    # To a service: how many each of its pods has seen, in all repetitions.
    endpoints: dict[Name, int] = Field({}, exclude_if=lambda known: not known)


def requests_of(
    scenario: Scenario,
    latencies: Iterable[Latency],
    idle: Mapping[str, Sequence[IdlePath]],
    endpoints: Mapping[str, Mapping[str, int]] | None = None,
) -> list[RequestsSummary]:
    """Return what is told of each kind of requests, in the scenario's order."""
    observed: dict[str, list[Latency]] = {}
    for latency in latencies:
        observed.setdefault(latency.requests.label, []).append(latency)
    return [
        _requests(scenario, one, observed.get(one.label, []), idle.get(one.label, [])).model_copy(
            update={"endpoints": dict((endpoints or {}).get(one.label, {}))}
        )
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
        phases={one.phase: _requests_phase(one, one.overall) for one in observed if one.overall is not None},
    )


def _requests_phase(latency: Latency, overall: Took) -> RequestsPhaseSummary:
    missed = verdict.missed_by_requests(latency)
    took = [one for one in latency.repetitions.values() if one is not None]
    return RequestsPhaseSummary(
        **_numbers(RequestsRepetitionSummary, overall, latency.repetitions, missed),
        p50_interval_s=spread.over_repetitions([one.p50_s for one in took], DIGITS),
        p99_interval_s=spread.over_repetitions([one.p99_s for one in took], DIGITS),
    )
