"""What ``summary.json`` says of a recording, put together; figures are rounded here and nowhere before."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.analysis import intervals, spread
from bench.analysis.flow_phases import FlowPhase, Measured
from bench.analysis.machine import Machine
from bench.analysis.phases import QUIET
from bench.analysis.requests_summary import RequestsSummary
from bench.analysis.samples import role_of
from bench.analysis.summary import (
    CalibrationSummary,
    EffectSummary,
    FlowSummary,
    PhaseSummary,
    RepetitionSummary,
    SecondsSummary,
    SpreadSummary,
    Summary,
)
from bench.analysis.verdict import Verdict, missed
from bench.observations.causes import Cause, Topic
from bench.recording.records import Foreseen, RunRecord
from testbed.scenario import Scenario, Traffic
from testbed.scenario.goodput import expected_goodput_of


def build(
    scenario: Scenario,
    record: RunRecord,
    observations: Iterable[FlowPhase],
    verdict: Verdict,
    machines: Iterable[Machine] = (),
    requests: Sequence[RequestsSummary] = (),
) -> Summary:
    """Put together what the recording shows.

    ``seconds.analysis`` is 0 until ``analysed`` sets it.
    """
    observed: dict[str, list[FlowPhase]] = {}
    for observation in observations:
        observed.setdefault(observation.flow, []).append(observation)
    return Summary(
        run_id=record.run_id,
        started_at=record.started_at,
        retry_of=record.retry_of,
        scenario=scenario.name,
        title=scenario.title,
        provider=record.provider,
        orchestrator=record.orchestrator,
        enforcement=scenario.kept_by,
        verdict=verdict.outcome,
        reasons=verdict.reasons,
        causes=verdict.causes,
        notes=[*verdict.notes, *_once(record)],
        flows=[
            _flow(scenario, traffic, observed.get(traffic.label, []), verdict.causes)
            for traffic in scenario.traffic
        ],
        requests=list(requests),
        calibration=_calibration(record),
        machine=list(machines),
        seconds=SecondsSummary(
            up=round(record.seconds.up, 3),
            calibration=round(record.seconds.calibration, 3),
            traffic=round(record.seconds.traffic, 3),
            down=round(record.seconds.down, 3),
            analysis=0.0,
        ),
    )


def _once(record: RunRecord) -> list[str]:
    once = len(record.repetitions) == 1
    return ["one repetition: nothing is known from run to run"] if once else []


def _flow(
    scenario: Scenario, traffic: Traffic, observations: list[FlowPhase], causes: Sequence[Cause]
) -> FlowSummary:
    role = role_of(scenario, traffic)
    guaranteed = role == "guaranteed"
    return FlowSummary(
        name=traffic.label,
        role=role,
        protocol=traffic.protocol,
        guarantee_bps=_rate(scenario.guarantee_of(traffic)) if guaranteed else None,
        expected_goodput_bps=_rate(expected_goodput_of(scenario, traffic)) if guaranteed else None,
        phases={
            o.phase: _phase(o, o.overall, missed(scenario, o, causes)).model_copy(
                update={"intervals": _intervals(o), "effect": _effect(scenario, o, observations)}
            )
            for o in observations
            if o.overall is not None
        },
    )


def _phase(
    observation: FlowPhase, overall: Measured, missed: Mapping[int, tuple[Topic, ...]]
) -> PhaseSummary:
    return PhaseSummary(
        **_samples(overall),
        shortfall=_share(observation.shortfall),
        met=not any(missed.values()) if missed else None,
        missed=tuple(dict.fromkeys(topic for topics in missed.values() for topic in topics)),
        repetitions=[
            RepetitionSummary(
                repetition=number,
                **_samples(measured),
                met=not missed[number] if missed else None,
                missed=missed.get(number, ()),
            )
            for number, measured in observation.repetitions.items()
            if measured is not None
        ],
    )


def _intervals(observation: FlowPhase) -> SpreadSummary | None:
    known = spread.spread(list(observation.series.values()))
    if known is None:
        return None
    expected = observation.expected_bps
    return SpreadSummary(
        mean_bps=spread.interval(known.mean, known.unit, 1),
        attainment=None if expected is None else spread.interval(known.attainment, known.unit, 6),
        shortfall=None if expected is None else spread.interval(known.shortfall(expected), known.unit, 6),
        block_length=known.block,
        seed=None if known.block is None else intervals.SEED,
        lag1=_share(known.lag1),
    )


def _effect(
    scenario: Scenario, observation: FlowPhase, observations: Iterable[FlowPhase]
) -> EffectSummary | None:
    """Return what a phase's disturbance does; None for quiet, and without a guarantee."""
    quiet = next((o for o in observations if o.phase == QUIET), None)
    expected = observation.expected_bps
    if quiet is None or quiet is observation or expected is None:
        return None
    found = spread.difference(quiet.series, observation.series)
    if found is None:
        return None
    low, high = found.interval
    return EffectSummary(
        share=round(found.value / expected, 6),
        interval=spread.interval(intervals.Interval(low / expected, high / expected), found.unit, 6),
        threshold=scenario.thresholds.effect,
    )


def _samples(measured: Measured) -> dict[str, Any]:
    """Return the fields of a ``SamplesSummary``."""
    return {
        "mean_bps": round(measured.mean_bps, 1),
        "p01_bps": round(measured.p01_bps, 1),
        "minimum_bps": round(measured.minimum_bps, 1),
        "attainment": _share(measured.attainment),
        "low": measured.low,
        "low_doubtful": measured.low_doubtful,
        "samples": measured.samples,
        "cpu_busy": _share(measured.cpu_busy),
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


def _rate(value: float | None) -> float | None:
    return None if value is None else round(float(value), 1)


def _share(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
