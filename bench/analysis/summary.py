"""``summary.json``: what a recording shows, for other tools.

The contract is versioned. Fields may be added within a version; renaming or removing one makes a new version.
Units are in the names: ``_bps`` is payload bits per second (the guarantee: as the scenario counts it),
``_s`` seconds; shares are between 0 and 1. ``null`` means that there is no such thing here, never zero.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from bench.analysis import delays, intervals, spread
from bench.analysis.causes import Cause, Kind
from bench.analysis.machine import Machine
from bench.analysis.observations import Measured, Observation
from bench.analysis.phases import QUIET, Phase
from bench.analysis.requests_summary import RequestsSummary
from bench.analysis.samples import Role, role_of
from bench.analysis.summary_parts import IntervalSummary, Part, interval
from bench.analysis.verdict import Outcome, Verdict, missed
from bench.recording import atomic
from bench.recording.directory import Recording
from bench.recording.records import Delayed, RunRecord
from testbed.scenario import Scenario, Traffic
from testbed.scenario.goodput import expected_goodput_of
from testbed.scenario.words import Title

# The first percentile of fewer samples lies between the lowest two of them.
FEWEST_FOR_A_PERCENTILE = 100


class SpreadSummary(Part):
    """How well the numbers of a phase are known."""

    mean_bps: IntervalSummary
    attainment: IntervalSummary | None  # null without a guarantee
    shortfall: IntervalSummary | None  # null without a guarantee
    block_length: int | None  # samples of a block; null: nothing was resampled
    seed: int | None  # of what was drawn; null: nothing was
    lag1: float | None  # autocorrelation of neighbouring samples; null: they do not vary


class EffectSummary(Part):
    """What a disturbance does to a flow: disturbed less quiet of the same repetition."""

    share: float  # of the expected goodput; negative: the flow got less
    interval: IntervalSummary
    threshold: float  # the least that matters, thresholds.effect of the scenario


class CauseSummary(Part):
    """One reason why a run is not *held*; see ``causes.Cause``. What it is not about is null."""

    kind: Kind
    flow: str | None
    phase: Phase | None
    repetition: int | None
    observed: float | None
    required: float | None
    text: str


class SamplesSummary(Part):
    """What some samples of one transfer in one phase amount to."""

    mean_bps: float  # weighted by time
    p01_bps: float  # first percentile of the samples; of fewer than 100 it is their minimum by another name
    minimum_bps: float | None = None  # these three: null in summaries of earlier versions
    attainment: float | None  # share of samples that reach the threshold; null without a guarantee
    low: int | None = None  # samples below the threshold; null without a guarantee
    low_doubtful: int | None = None  # of these, those for which the machine may be to blame
    samples: int
    cpu_busy: float | None  # busy share of all processors during these samples, stolen time included

    @property
    def shows_minimum(self) -> bool:
        """Whether there are too few samples for a percentile of its own."""
        return self.samples < FEWEST_FOR_A_PERCENTILE and self.minimum_bps is not None

    @property
    def lowest_bps(self) -> float:
        """What is shown as the low end: the first percentile, or the minimum of few samples."""
        return self.minimum_bps if self.shows_minimum and self.minimum_bps is not None else self.p01_bps


class RepetitionSummary(SamplesSummary):
    """One transfer in one phase of one repetition."""

    repetition: int
    met: bool | None = None  # whether it met both thresholds; null without a guarantee


class PhaseSummary(SamplesSummary):
    """One transfer in one phase, all repetitions together."""

    shortfall: float | None  # share of the expected goodput that the mean misses; null without a guarantee
    met: bool | None  # whether every repetition met both thresholds; null without a guarantee
    repetitions: list[RepetitionSummary]
    intervals: SpreadSummary | None = None  # null: too few samples to tell
    effect: EffectSummary | None = None  # of a disturbed phase; null: without a guarantee, or too few samples

    @property
    def judged(self) -> SamplesSummary:
        """What the phase was judged by: the worst of the repetitions that missed, otherwise all together."""
        missed = [one for one in self.repetitions if one.met is False]
        return min(missed, key=lambda one: one.mean_bps) if missed else self


class FlowSummary(Part):
    """One flow or disturbance."""

    name: Title
    role: Role
    protocol: str
    guarantee_bps: float | None
    expected_goodput_bps: float | None
    phases: dict[Phase, PhaseSummary]


class CalibrationSummary(Part):
    """What the guaranteed flows' paths carried without shaping, all at once, when it was least."""

    total_bps: float | None
    flows_bps: dict[str, float]
    before_bps: float | None = None  # in all, before the traffic; null: not made, or not recorded
    after_bps: float | None = None


class IntervalsSummary(Part):
    """How regular a receiver's reporting intervals are."""

    share: float  # of those that are off by more than a tenth
    longest_s: float


class DelayedSummary(Part):
    """One direction of a trunk that takes time. What nobody counted is null."""

    zone: str
    out: bool  # from the zone to the others
    means: str  # what made the delay: netem, or our own relay
    delay_s: float
    frames: int | None
    late: float | None  # share of frames that were later than a tenth of the delay, beside the delay
    p99_s: float | None  # how late the most punctual 99 % of the frames were at most, to a power of two
    worst_s: float | None
    dropped: int | None  # packets that it lost itself


class MachineSummary(Part):
    """What else is known of one repetition; see ``machine.Machine``. What was not recorded is null."""

    repetition: int
    softirq: dict[str, list[float]] | None
    pressure: float | None
    dropped: dict[str, int] | None
    default_class_bytes: dict[str, int] | None
    retransmits: dict[str, int]
    irregular: dict[str, IntervalsSummary]
    # Not in the file where no trunk takes time, as in those of earlier versions.
    delayed: list[DelayedSummary] | None = Field(None, exclude_if=lambda trunks: trunks is None)


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
    causes: list[CauseSummary] = Field([])  # one for each reason, in the same order
    notes: list[str]
    flows: list[FlowSummary]
    # Not in the file without any, so that summaries of earlier versions stay what they are.
    requests: list[RequestsSummary] = Field([], exclude_if=lambda known: not known)
    calibration: CalibrationSummary | None
    machine: list[MachineSummary] = Field([])
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
    machines: Iterable[Machine] = (),
    requests: Sequence[RequestsSummary] = (),
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
        enforcement=scenario.kept_by,
        verdict=verdict.outcome,
        reasons=verdict.reasons,
        causes=[_cause(cause) for cause in verdict.causes],
        notes=[*verdict.notes, *_once(record)],
        flows=[_flow(scenario, traffic, observed.get(traffic.label, [])) for traffic in scenario.traffic],
        requests=list(requests),
        calibration=_calibration(record),
        machine=[_machine(one) for one in machines],
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


def render(summary: Summary) -> str:
    """Return the text of ``summary.json``."""
    data = summary.model_dump(mode="json", by_alias=True)
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def read(file: Path) -> Summary:
    """Read a ``summary.json``. Raises StoredError, for any other version too."""
    with atomic.remedy(f"make it again: ./invokew figures {shlex.quote(str(file.parent))}"):
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
            o.phase: _phase(o, o.overall, missed(scenario, o)).model_copy(
                update={"intervals": _intervals(o), "effect": _effect(scenario, o, observations)}
            )
            for o in observations
            if o.overall is not None
        },
    )


def _phase(observation: Observation, overall: Measured, missed: Mapping[int, bool]) -> PhaseSummary:
    return PhaseSummary(
        **_samples(overall),
        shortfall=_share(observation.shortfall),
        met=not any(missed.values()) if missed else None,
        repetitions=[
            RepetitionSummary(
                repetition=number,
                **_samples(measured),
                met=not missed[number] if missed else None,
            )
            for number, measured in observation.repetitions.items()
            if measured is not None
        ],
    )


def _intervals(observation: Observation) -> SpreadSummary | None:
    known = spread.spread(list(observation.series.values()))
    if known is None:
        return None
    expected = observation.expected_bps
    return SpreadSummary(
        mean_bps=interval(known.mean, known.unit, 1),
        attainment=None if expected is None else interval(known.attainment, known.unit, 6),
        shortfall=None if expected is None else interval(known.shortfall(expected), known.unit, 6),
        block_length=known.block,
        seed=None if known.block is None else intervals.SEED,
        lag1=_share(known.lag1),
    )


def _effect(
    scenario: Scenario, observation: Observation, observations: Iterable[Observation]
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
        interval=interval(intervals.Interval(low / expected, high / expected), found.unit, 6),
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


def _cause(cause: Cause) -> CauseSummary:
    return CauseSummary(
        kind=cause.kind,
        flow=cause.flow,
        phase=cause.phase,
        repetition=cause.repetition,
        observed=_number(cause.observed),
        required=_number(cause.required),
        text=cause.text,
    )


def _number(value: float | None) -> float | None:
    """Round a rate to a tenth of a bit, and a share to six digits."""
    return None if value is None else round(value, 6 if abs(value) <= 1 else 1)


def _machine(one: Machine) -> MachineSummary:
    softirq = one.softirq
    return MachineSummary(
        repetition=one.repetition,
        softirq=softirq and {name: [round(share, 6) for share in of] for name, of in softirq.items()},
        pressure=_share(one.pressure),
        dropped=_plain(one.dropped),
        default_class_bytes=_plain(one.default_class_bytes),
        retransmits=dict(one.retransmits),
        irregular={
            flow: IntervalsSummary(share=round(of.share, 6), longest_s=round(of.longest_s, 6))
            for flow, of in one.irregular.items()
        },
        delayed=None if one.delayed is None else [_delayed(trunk) for trunk in one.delayed],
    )


def _delayed(one: Delayed) -> DelayedSummary:
    return DelayedSummary(
        zone=one.zone,
        out=one.out,
        means=one.means,
        delay_s=one.delay_s,
        frames=one.frames,
        late=_share(delays.late_share(one)),
        p99_s=_share(delays.lateness(one, 0.99)),
        worst_s=_share(one.worst_s),
        dropped=one.dropped,
    )


def _plain(counts: Mapping[str, int] | None) -> dict[str, int] | None:
    return None if counts is None else dict(counts)


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
    )


def _rate(value: float | None) -> float | None:
    return None if value is None else round(float(value), 1)


def _share(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
