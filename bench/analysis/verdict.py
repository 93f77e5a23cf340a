"""Did every guaranteed flow get what it was promised - and does this run prove it?

*held*: every guaranteed flow met both thresholds in every phase of every repetition. *violated*: one did
not, and the machine had capacity to spare. *invalid*: the run proves neither.

Being short of processor time can only lower a flow's rate, never raise it. So a flow that met its guarantee
on a busy machine has met it, while one that missed it there may have been starved by the machine rather
than by its neighbours: a miss counts only if the processors were not saturated meanwhile. Repetitions are
judged one by one, so that a good one cannot make up for a bad one. Likewise a miss does not count if there
is none without the samples that may be low because of the machine (``excuses``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from typing import Literal

from bench import generators
from bench.analysis.excuses import CPU_SATURATED
from bench.analysis.observations import Measured, Observation
from bench.analysis.phases import FEWEST_SAMPLES
from bench.recording.records import RunRecord
from testbed.scenario import Scenario
from testbed.scenario.units import format_bps, format_share, unit_for

Outcome = Literal["held", "violated", "invalid"]

# A promise above this share of what the unshaped paths carried leaves the machine no room for the
# disturbance and for TCP's own ups and downs; VXLAN alone costs that much on fast links (flannel-io#1816).
PROMISE_LIMIT = 0.8
# A calibration that reaches this share of the underlay's own rate was limited by the underlay - which is
# part of the experiment - and not by the machine. Encapsulation and TCP take 8 % of it.
UNDERLAY_FILLED = 0.8

# Fewer samples that are beyond doubt than this share of a flow's in one phase do not show a broken promise.
FEWEST_SOUND = 0.2


@dataclass(frozen=True)
class Verdict:
    """What the run shows, and why it is not *held*; ``notes`` qualify it without changing it."""

    outcome: Outcome
    reasons: list[str]
    notes: list[str]


@dataclass(frozen=True)
class _Miss:
    text: str
    starved: bool  # the machine may have been the cause


def judge(
    scenario: Scenario, record: RunRecord, observations: Iterable[Observation], faults: Iterable[str]
) -> Verdict:
    """Return the verdict. ``faults`` are transfers without a measurement and counters that disagree."""
    guaranteed = [o for o in observations if o.role == "guaranteed"]
    invalid = [*record.faults, *faults, *_gaps(scenario, record, guaranteed), *_calibration(scenario, record)]
    misses = [miss for observation in guaranteed for miss in _misses(scenario, observation)]
    violated = [miss.text for miss in misses if not miss.starved]
    starved = [miss.text for miss in misses if miss.starved]
    notes = [*_busy(guaranteed), *_stalls(record), *record.notes]
    if record.calibration is None:
        notes.append("the machine's own limit is not known: no calibration was recorded")
    if invalid:
        return Verdict("invalid", [*invalid, *violated, *starved], notes)
    if violated:
        return Verdict("violated", [*violated, *starved], notes)
    return Verdict("invalid" if starved else "held", starved, notes)


def met(scenario: Scenario, observation: Observation) -> bool | None:
    """Return whether one flow met both thresholds in one phase; None if it was promised nothing."""
    if observation.expected_bps is None or observation.overall is None:
        return None
    return not any(_misses(scenario, observation))


def _gaps(scenario: Scenario, record: RunRecord, guaranteed: list[Observation]) -> Iterator[str]:
    """What was to be measured and was not."""
    if not generators.guaranteed(scenario):
        yield "no flow has a guarantee, so there is nothing to hold"
        return
    wanted, done = scenario.measurement.repetitions, len(record.repetitions)
    if done < wanted:
        yield f"{done} of {wanted} repetitions were recorded"
    for o in guaranteed:
        for number, measured in o.repetitions.items():
            count = measured.samples if measured else 0
            if count < FEWEST_SAMPLES:
                yield (
                    f"{o.flow}, {o.phase}, repetition-{number}: {count} samples are too few to judge "
                    f"(at least {FEWEST_SAMPLES})"
                )
    if done and scenario.disturbances and not any(o.phase == "disturbed" for o in guaranteed):
        yield "no guaranteed flow was measured while anything disturbed it"


def _calibration(scenario: Scenario, record: RunRecord) -> Iterator[str]:
    """Is the promise too near to what this machine can do at all?"""
    calibration = record.calibration
    if calibration is None:
        return
    if calibration.error:
        yield f"the calibration failed: {calibration.error}"
        return
    reached, promised = sum(calibration.bits_per_second.values()), _promised(scenario)
    if _fills_underlay(scenario, reached) or promised <= PROMISE_LIMIT * reached:
        return
    unit = unit_for([promised])
    yield (
        f"the promise of {format_bps(promised, unit)} in all is more than {PROMISE_LIMIT:.0%} of the "
        f"{format_bps(reached, unit)} that the same paths carried without shaping: too near to what the "
        "machine can do"
    )


def _promised(scenario: Scenario) -> float:
    """The most that is promised at one time, bits per second."""
    flows = [(flow, scenario.guarantee_of(flow) or 0) for flow in generators.guaranteed(scenario)]
    return max(
        float(sum(rate for flow, rate in flows if flow.start <= moment.start < flow.end))
        for moment in scenario.flows
    )


def _fills_underlay(scenario: Scenario, reached: float) -> bool:
    if scenario.underlay.rate is None:
        return False
    flows = generators.guaranteed(scenario)
    sources = {scenario.node_of(flow.source) for flow in flows}
    destinations = {scenario.node_of(flow.destination) for flow in flows}
    links = min(len(sources), len(destinations))
    return reached >= UNDERLAY_FILLED * scenario.underlay.rate * links


def _misses(scenario: Scenario, observation: Observation) -> Iterator[_Miss]:
    count = len(observation.repetitions)
    for number, measured in observation.repetitions.items():
        if measured is None or observation.expected_bps is None:
            continue
        missed = _shortfalls(scenario, measured, observation.expected_bps)
        if not missed:
            continue
        text = " and ".join(missed.values())
        which = f", repetition-{number}" if count > 1 else ""
        starved = measured.cpu_busy is not None and measured.cpu_busy >= CPU_SATURATED
        if starved:
            text += (
                f"; the processors were {format_share(measured.cpu_busy or 0)} busy, so it may be the machine"
            )
        elif _only_doubtful(scenario, measured, observation.expected_bps, missed.keys()):
            starved = True
            text += (
                f"; in {measured.doubtful} samples the machine stood still, was saturated, lacked what its "
                "host gave to others, or left the sender idle or the link with room, so it may be the machine"
            )
        yield _Miss(f"{observation.flow}, {observation.phase}{which}: {text}", starved)


def _only_doubtful(scenario: Scenario, measured: Measured, expected: float, missed: Set[str]) -> bool:
    """Tell whether none of the missed thresholds is missed without the doubtful samples too.

    Or whether hardly a sample is another.

    It has to be the same threshold: what a doubtful sample lacked arrives in the next, so that the mean of
    the others may be low where that of all is not.
    """
    if not measured.doubtful:
        return False
    if measured.sound is None or measured.sound.samples < FEWEST_SOUND * measured.samples:
        return True
    return missed.isdisjoint(_shortfalls(scenario, measured.sound, expected))


def _shortfalls(scenario: Scenario, measured: Measured, expected: float) -> dict[str, str]:
    """Say for each threshold that the samples fall short of, by its name in the scenario, how they do."""
    thresholds, texts = scenario.thresholds, {}
    if measured.mean_bps < thresholds.mean * expected:
        unit = unit_for([expected])
        texts["mean"] = (
            f"the mean of {format_bps(measured.mean_bps, unit)} is "
            f"{format_share(measured.mean_bps / expected)} of the expected {format_bps(expected, unit)} "
            f"(at least {format_share(thresholds.mean)})"
        )
    if measured.attainment is not None and measured.attainment < thresholds.attainment:
        texts["attainment"] = (
            f"{format_share(measured.attainment)} of {measured.samples} samples reached "
            f"{format_bps(thresholds.sample * expected)} (at least {format_share(thresholds.attainment)})"
        )
    return texts


def _busy(guaranteed: list[Observation]) -> Iterator[str]:
    for phase in ("quiet", "disturbed"):
        shares = [
            measured.cpu_busy
            for o in guaranteed
            if o.phase == phase
            for measured in o.repetitions.values()
            if measured and measured.cpu_busy is not None
        ]
        if shares and max(shares) >= CPU_SATURATED:
            yield f"{phase}: the processors were saturated (up to {format_share(max(shares))} busy)"


def _stalls(record: RunRecord) -> Iterator[str]:
    lengths = [stall.end_s - stall.start_s for done in record.repetitions for stall in done.stalls]
    if lengths:
        count = f"{len(lengths)} times" if len(lengths) > 1 else "once"
        yield f"the machine stood still {count}, for {max(lengths) * 1000:.0f} ms at the longest"
