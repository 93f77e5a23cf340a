"""``summary.json``: what a recording shows, for other tools.

The contract is versioned. Fields may be added within a version; renaming or removing one makes a new version.
Units are in the names: ``_bps`` is payload bits per second (the guarantee: as the scenario counts it),
``_s`` seconds; shares are between 0 and 1. ``null`` means that there is no such thing here, never zero.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from bench.analysis.observations import Measured, Observation
from bench.analysis.phases import Phase
from bench.analysis.samples import Role, role_of
from bench.analysis.verdict import Outcome, Verdict, met
from bench.recording import atomic
from bench.recording.directory import Recording
from bench.recording.records import RunRecord
from testbed.scenario import Scenario, Traffic
from testbed.scenario.goodput import expected_goodput_of
from testbed.scenario.model import Title


class Part(BaseModel):
    """Base of everything in the summary; fields of later additions are ignored when reading."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True, allow_inf_nan=False)


class RepetitionSummary(Part):
    """One transfer in one phase of one repetition."""

    repetition: int
    mean_bps: float
    p01_bps: float
    attainment: float | None
    samples: int
    cpu_busy: float | None


class PhaseSummary(Part):
    """One transfer in one phase, all repetitions together."""

    mean_bps: float  # weighted by time
    p01_bps: float  # first percentile of the samples
    attainment: float | None  # share of samples that reach the threshold; null without a guarantee
    samples: int
    shortfall: float | None  # share of the expected goodput that the mean misses; null without a guarantee
    met: bool | None  # whether every repetition met both thresholds; null without a guarantee
    cpu_busy: float | None  # busy share of all processors during these samples, stolen time included
    repetitions: list[RepetitionSummary]


class FlowSummary(Part):
    """One flow or disturbance."""

    name: Title
    role: Role
    protocol: str
    guarantee_bps: float | None
    expected_goodput_bps: float | None
    phases: dict[Phase, PhaseSummary]


class CalibrationSummary(Part):
    """What the guaranteed flows' paths carried without shaping, all at once."""

    total_bps: float | None
    flows_bps: dict[str, float]


class SecondsSummary(Part):
    """How long the parts took."""

    up: float
    calibration: float
    traffic: float
    down: float
    analysis: float


class Summary(Part):
    """The whole file."""

    # In the file it is called "schema", which pydantic's models cannot have as a name.
    schema_version: Literal[1] = Field(1, alias="schema")
    run_id: str
    started_at: str
    scenario: str
    title: Title
    provider: str
    orchestrator: str
    enforcement: str
    verdict: Outcome
    reasons: list[str]
    notes: list[str]
    flows: list[FlowSummary]
    calibration: CalibrationSummary | None
    seconds: SecondsSummary

    def analysed(self, seconds: float) -> Summary:
        """Return the same summary with the time its analysis took."""
        took = self.seconds.model_copy(update={"analysis": round(seconds, 3)})
        return self.model_copy(update={"seconds": took})


def build(
    recording: Recording,
    scenario: Scenario,
    record: RunRecord,
    observations: Iterable[Observation],
    verdict: Verdict,
) -> Summary:
    """Put together what the recording shows; figures are rounded only here, after the verdict.

    ``seconds.analysis`` is 0 until ``analysed`` sets it.
    """
    observed: dict[str, list[Observation]] = {}
    for observation in observations:
        observed.setdefault(observation.flow, []).append(observation)
    return Summary(
        run_id=record.run_id,
        started_at=record.started_at,
        scenario=scenario.name,
        title=scenario.title,
        provider=record.provider,
        orchestrator=record.orchestrator,
        enforcement=scenario.enforcement,
        verdict=verdict.outcome,
        reasons=verdict.reasons,
        notes=verdict.notes,
        flows=[_flow(scenario, traffic, observed.get(traffic.label, [])) for traffic in scenario.traffic],
        calibration=_calibration(record),
        seconds=SecondsSummary(
            up=round(record.seconds.up, 3),
            calibration=round(record.seconds.calibration, 3),
            traffic=round(record.seconds.traffic, 3),
            down=round(record.seconds.down, 3),
            analysis=0.0,
        ),
    )


def render(summary: Summary) -> str:
    """Return the text of ``summary.json``."""
    data = summary.model_dump(mode="json", by_alias=True)
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def read(file: Path) -> Summary:
    """Read a ``summary.json``. Raises StoredError, for any other version too."""
    return atomic.read(file, Summary)


def _flow(scenario: Scenario, traffic: Traffic, observations: list[Observation]) -> FlowSummary:
    role = role_of(scenario, traffic)
    guaranteed = role == "guaranteed"
    return FlowSummary(
        name=traffic.label,
        role=role,
        protocol=traffic.protocol,
        guarantee_bps=_rate(scenario.guarantee_of(traffic)) if guaranteed else None,
        expected_goodput_bps=_rate(expected_goodput_of(scenario, traffic)) if guaranteed else None,
        phases={
            o.phase: _phase(o, o.overall, met(scenario, o)) for o in observations if o.overall is not None
        },
    )


def _phase(observation: Observation, overall: Measured, met: bool | None) -> PhaseSummary:
    return PhaseSummary(
        mean_bps=round(overall.mean_bps, 1),
        p01_bps=round(overall.p01_bps, 1),
        attainment=_share(overall.attainment),
        samples=overall.samples,
        shortfall=_share(observation.shortfall),
        met=met,
        cpu_busy=_share(overall.cpu_busy),
        repetitions=[
            RepetitionSummary(
                repetition=number,
                mean_bps=round(measured.mean_bps, 1),
                p01_bps=round(measured.p01_bps, 1),
                attainment=_share(measured.attainment),
                samples=measured.samples,
                cpu_busy=_share(measured.cpu_busy),
            )
            for number, measured in observation.repetitions.items()
            if measured is not None
        ],
    )


def _calibration(record: RunRecord) -> CalibrationSummary | None:
    if record.calibration is None:
        return None
    rates = {name: round(rate, 1) for name, rate in record.calibration.bits_per_second.items()}
    return CalibrationSummary(total_bps=round(sum(rates.values()), 1) if rates else None, flows_bps=rates)


def _rate(value: float | None) -> float | None:
    return None if value is None else round(float(value), 1)


def _share(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
