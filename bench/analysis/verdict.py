"""Did every guaranteed flow get what it was promised - and does this run prove it?

*held*: every guaranteed flow met both thresholds in every phase of every repetition, and no pod sent more
than its network claims to let it (``ceilings``). *violated*: one did not, and the machine had capacity to
spare, or one sent more. *invalid*: the run proves neither.

Being short of processor time can only lower a flow's rate, never raise it. So a flow that met its guarantee
on a busy machine has met it, while one that missed it there may have been starved by the machine rather
than by its neighbours: a miss counts only if the processors were not saturated meanwhile. Repetitions are
judged one by one, so that a good one cannot make up for a bad one. Likewise a miss does not count if there
is none without the samples that may be low because of the machine (``excuses``). Nor is a promise known to be
broken whose mean was kept, where a sample holds so few bytes that it may be low by a packet.

Whatever the machine does by itself, it makes latencies longer, never shorter. So a threshold of requests that
was met was met; a miss counts only if it was not the machine's: the processors were not saturated, the miss
is one without the exchanges that the machine held up, and the generator itself was not late when it sent. A
generator that is late makes numbers that are not the path's, whether they are judged or not. So a run is
invalid in which it was late by more than a tenth of what is reported, unless that is as little as a machine
can be held to at so many exchanges a second.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Literal, NamedTuple

from bench import generators
from bench.analysis import excuses
from bench.analysis.excuses import CPU_SATURATED
from bench.analysis.flow_phases import FlowPhase, Measured
from bench.analysis.latency import Latency, Took
from bench.analysis.phases import FEWEST_SAMPLES, QUIET
from bench.generators import promised
from bench.generators.promised import PROMISE_LIMIT
from bench.observations import observation as observed
from bench.observations.causes import Cause, Kind, Topic
from bench.observations.observation import Evidence
from bench.recording.records import RunRecord
from testbed.scenario import Requests, Scenario
from testbed.scenario.units import format_bps, format_seconds, format_share, unit_for

Outcome = Literal["held", "violated", "invalid"]

# From this difference between the first calibration and the last on, a machine was not one and the same.
DRIFT = 0.2
# Of the latency that is reported; so much the generator itself may add to it.
LATE_SHARE = 0.1
# A processor that sleeps takes this long to wake, and this is what one can hold a machine to: the lateness,
# seconds, that is no fault up to so many exchanges a second. Beyond them there is none.
ALLOWED = {100: 0.0006, 1000: 0.0003}


@dataclass(frozen=True)
class Verdict:
    """What the run shows, and why it is not *held*; ``notes`` qualify it without changing it."""

    outcome: Outcome
    causes: list[Cause]
    notes: list[str]

    @property
    def reasons(self) -> list[str]:
        """The causes in words."""
        return [cause.text for cause in self.causes]


class _Miss(NamedTuple):
    """A threshold that was missed: by what, and what it asks for."""

    text: str
    observed: float | None  # None: among the requests that were lost
    required: float


Misses = Mapping[Topic, _Miss]  # by the thresholds' names in the scenario


def judge(
    scenario: Scenario,
    record: RunRecord,
    observations: Iterable[FlowPhase],
    faults: Iterable[Cause],
    latencies: Sequence[Latency] = (),
    exceeded: Sequence[Cause] = (),
    totals: Mapping[tuple[int, str, str], int] | None = None,
) -> Verdict:
    """Return the verdict. ``faults`` are transfers without a measurement.

    ``totals`` are what the ends of transfers counted (``observation.Evidence``). ``exceeded`` are ceilings
    (``ceilings``): no lack of a machine excuses them.
    """
    guaranteed = [o for o in observations if o.role == "guaranteed"]
    prompt = [cause for latency in latencies for cause in of_requests(latency)]
    invalid = [
        *_recorded(record),
        *faults,
        *observed.causes(Evidence(scenario, record, totals or {})),
        *_gaps(scenario, record, guaranteed, latencies),
        *(cause for cause in prompt if cause.kind == "measurement"),
        *_calibration(scenario, record),
    ]
    misses = [miss for of in guaranteed for miss in _misses(scenario, of)]
    misses += [cause for cause in prompt if cause.kind != "measurement"]
    few, busy = _few(scenario, guaranteed), _busy(guaranteed)
    notes = [*few, *busy, *observed.notes(scenario, record), *_drift(record), *record.notes]
    if record.calibration is None and (generators.guaranteed(scenario) or not scenario.requests):
        notes.append("the machine's own limit is not known: no calibration was recorded")
    outcome, reasons = _outcome(exceeded, invalid, misses)
    return Verdict(outcome, reasons, notes)


def _outcome(
    exceeded: Sequence[Cause], invalid: list[Cause], misses: list[Cause]
) -> tuple[Outcome, list[Cause]]:
    """Return what a run shows, and why, what decides first."""
    violated = [*exceeded, *(miss for miss in misses if miss.kind == "promise")]
    starved = [miss for miss in misses if miss.kind != "promise"]
    # That nothing else was promised is no excuse for it, either.
    if exceeded and all(cause.kind == "machine" or "unpromised" in cause.topics for cause in invalid):
        return "violated", [*violated, *invalid, *starved]
    if invalid:
        return "invalid", [*invalid, *violated, *starved]
    if violated:
        return "violated", [*violated, *starved]
    return "invalid" if starved else "held", starved


def met(scenario: Scenario, observation: FlowPhase) -> bool | None:
    """Return whether one flow met both thresholds in one phase; None if it was promised nothing."""
    if observation.expected_bps is None or observation.overall is None:
        return None
    return not any(missed(scenario, observation).values())


def missed(
    scenario: Scenario, observation: FlowPhase, causes: Iterable[Cause] = ()
) -> dict[int, tuple[Topic, ...]]:
    """Return of each repetition with samples what decided that one flow did not hold in one phase.

    ``causes`` are the verdict's, of which ceilings that were exceeded count, in the phases that were above
    them. Nothing if the flow was promised nothing, and exceeded nothing.
    """
    over = [cause for cause in causes if "ceiling" in cause.topics and cause.flow == observation.flow]
    if observation.expected_bps is None and not over:
        return {}
    topics: dict[int, tuple[Topic, ...]] = {
        number: () for number, measured in observation.repetitions.items() if measured
    }
    for cause in _misses(scenario, observation):
        if cause.repetition in topics:
            topics[cause.repetition] += cause.topics
    for cause in over:
        measured = observation.repetitions.get(cause.repetition or 0)
        if measured and cause.repetition is not None and measured.mean_bps > (cause.required or 0):
            topics[cause.repetition] += cause.topics
    return topics


def _recorded(record: RunRecord) -> Iterator[Cause]:
    """What was found while the testbed was up; what an earlier version found is the kernel's state."""
    known = set()
    for number, repetition in enumerate(record.repetitions):
        for fault in repetition.faults:
            known.add(fault.text)
            topic: Topic = "kernel" if fault.kind == "state" else "clocks"
            yield Cause(kind=fault.kind, text=fault.text, repetition=number, topics=(topic,))
    yield from (
        Cause(kind="state", text=text, topics=("kernel",)) for text in record.faults if text not in known
    )


def _gaps(
    scenario: Scenario, record: RunRecord, guaranteed: list[FlowPhase], latencies: Sequence[Latency]
) -> Iterator[Cause]:
    """What was to be measured and was not."""
    judged = [one for one in latencies if one.requests.judged]
    if not generators.guaranteed(scenario) and not any(one.judged for one in scenario.requests):
        lacking = "no flow has a guarantee" + (", and no requests a threshold" if scenario.requests else "")
        yield Cause(
            kind="measurement", text=f"{lacking}, so there is nothing to hold", topics=("unpromised",)
        )
        return
    wanted, done = scenario.measurement.repetitions, len(record.repetitions)
    if done < wanted:
        text = f"{done} of {wanted} repetitions were recorded"
        yield Cause(kind="measurement", text=text, observed=done, required=wanted, topics=("repetitions",))
    yield from _unsampled(guaranteed)
    looked_at = [*(o.phase for o in guaranteed), *(one.phase for one in judged)]
    if done and scenario.disturbances and all(phase == QUIET for phase in looked_at):
        neither = "neither a guaranteed flow nor requests with a threshold were"
        what = neither if scenario.requests else "no guaranteed flow was"
        text = f"{what} measured while anything disturbed it"
        yield Cause(kind="measurement", text=text, topics=("undisturbed",))


def _unsampled(guaranteed: list[FlowPhase]) -> Iterator[Cause]:
    """Yield each repetition of a phase with too few samples."""
    for o in guaranteed:
        for number, measured in o.repetitions.items():
            count = measured.samples if measured else 0
            if count < FEWEST_SAMPLES:
                text = f"{count} samples are too few to judge (at least {FEWEST_SAMPLES})"
                yield _cause(o, number, "measurement", text, count, FEWEST_SAMPLES, "samples", named=True)


def _calibration(scenario: Scenario, record: RunRecord) -> Iterator[Cause]:
    """Is the promise too near to what this machine can do at all?"""
    calibration = record.calibration
    if calibration is None:
        return
    if calibration.error:
        text = f"the calibration failed: {calibration.error}"
        yield Cause(kind="measurement", text=text, topics=("uncalibrated",))
        return
    reached, promises = math.fsum(calibration.bits_per_second.values()), promised.of(scenario)
    if promises.fits(reached):
        return
    promise = promises.most_bps
    unit = unit_for([promise])
    text = (
        f"the promise of {format_bps(promise, unit)} in all is more than {PROMISE_LIMIT:.0%} of the "
        f"{format_bps(reached, unit)} that the same paths carried without shaping: too near to what the "
        "machine can do"
    )
    required = promise / PROMISE_LIMIT
    yield Cause(kind="machine", text=text, observed=reached, required=required, topics=("calibration",))


def _misses(scenario: Scenario, observation: FlowPhase) -> Iterator[Cause]:
    """Yield each repetition that fell short."""
    expected = observation.expected_bps
    for number, measured in observation.repetitions.items():
        if measured is None or expected is None:
            continue
        if missed := _shortfalls(scenario, measured, expected):
            excuse = excuses.busy(measured.cpu_busy)
            if not excuse and _only_doubtful(scenario, measured, expected, missed.keys()):
                excuse = (
                    f"; in {measured.doubtful} samples the machine stood still, was saturated, lacked what "
                    "its host gave to others, or left the sender idle or the link with room, so it may be "
                    "the machine"
                )
            if not excuse and (coarse := _coarse(scenario, observation.flow, expected, missed.keys())):
                yield _missed(observation, number, missed, coarse, "measurement", "coarse")
            else:
                yield _missed(observation, number, missed, excuse)


def _coarse(scenario: Scenario, flow: str, expected: float, missed: Set[Topic]) -> str:
    """Return why samples alone that are low break no promise, for the end of its words; empty if they do."""
    (traffic,) = (one for one in scenario.flows if one.label == flow)
    fewest = generators.generator_of(scenario, traffic).fewest_sample_bytes
    interval = scenario.measurement.interval
    holds = expected * interval / 8
    if missed != {"attainment"} or holds >= fewest:
        return ""
    return (
        f"; a sample of {interval * 1000:g} ms holds {holds / 1000:.0f} kB, too few to tell: "
        f"at least {fewest / 1000:.0f}"
    )


def _missed(
    of: FlowPhase | Latency,
    number: int,
    misses: Misses,
    excuse: str,
    excused: Kind = "machine",
    *topics: Topic,
) -> Cause:
    """Return why a repetition missed thresholds, with the numbers of the first; ``excuse`` may be empty."""
    first = next(iter(misses.values()))
    text = " and ".join(miss.text for miss in misses.values())
    kind: Kind = excused if excuse else "promise"
    return _cause(of, number, kind, f"{text}{excuse}", first.observed, first.required, *misses, *topics)


def _cause(
    of: FlowPhase | Latency,
    number: int,
    kind: Kind,
    text: str,
    observed: float | None,
    required: float,
    *topics: Topic,
    named: bool = False,
) -> Cause:
    """Return why a repetition does not hold, or proves nothing; one of several is named in the text."""
    which = f", repetition-{number}" if named or len(of.repetitions) > 1 else ""
    return Cause(
        kind=kind,
        text=f"{of.flow}, {of.phase}{which}: {text}",
        flow=of.flow,
        phase=of.phase,
        repetition=number,
        observed=observed,
        required=required,
        topics=topics,
    )


def _only_doubtful(scenario: Scenario, measured: Measured, expected: float, missed: Set[Topic]) -> bool:
    """Tell whether none of the missed thresholds is missed without the doubtful samples too.

    Or whether hardly a sample is another.

    It has to be the same threshold: what a doubtful sample lacked arrives in the next, so that the mean of
    the others may be low where that of all is not.
    """
    if not measured.doubtful:
        return False
    if measured.sound is None or measured.sound.samples < excuses.FEWEST_SOUND * measured.samples:
        return True
    return missed.isdisjoint(_shortfalls(scenario, measured.sound, expected))


def _shortfalls(scenario: Scenario, measured: Measured, expected: float) -> Misses:
    """Return the thresholds that the samples fall short of, by their names in the scenario."""
    thresholds = scenario.thresholds
    found: dict[Topic, _Miss] = {}
    if measured.mean_bps < thresholds.mean * expected:
        unit = unit_for([expected])
        text = (
            f"the mean of {format_bps(measured.mean_bps, unit)} is "
            f"{format_share(measured.mean_bps / expected)} of the expected {format_bps(expected, unit)} "
            f"(at least {format_share(thresholds.mean)})"
        )
        found["mean"] = _Miss(text, measured.mean_bps, thresholds.mean * expected)
    if measured.attainment is not None and measured.attainment < thresholds.attainment:
        text = (
            f"{format_share(measured.attainment)} of {measured.samples} samples reached "
            f"{format_bps(thresholds.sample * expected)} (at least {format_share(thresholds.attainment)})"
        )
        found["attainment"] = _Miss(text, measured.attainment, thresholds.attainment)
    return found


def _busy(guaranteed: list[FlowPhase]) -> Iterator[str]:
    for phase in dict.fromkeys(o.phase for o in guaranteed):
        shares = [
            measured.cpu_busy
            for o in guaranteed
            if o.phase == phase
            for measured in o.repetitions.values()
            if measured and measured.cpu_busy is not None
        ]
        if shares and max(shares) >= CPU_SATURATED:
            yield f"{phase}: the processors were saturated (up to {format_share(max(shares))} busy)"


def _few(scenario: Scenario, guaranteed: list[FlowPhase]) -> Iterator[str]:
    """In which phases must every sample reach the threshold, because there are so few?"""
    share = scenario.thresholds.attainment
    for phase in dict.fromkeys(o.phase for o in guaranteed):
        counts = [m.samples for o in guaranteed if o.phase == phase for m in o.repetitions.values() if m]
        few = sorted({count for count in counts if count >= FEWEST_SAMPLES and (count - 1) / count < share})
        if few and share < 1:
            which = f"{few[0]} to {few[-1]}" if len(few) > 1 else f"{few[0]}"
            yield f"{phase}: {which} samples are so few that {format_share(share)} of them means all"


def _drift(record: RunRecord) -> Iterator[str]:
    """Did the machine carry less, or more, at the end than at the beginning?"""
    totals = [math.fsum(one.bits_per_second.values()) for one in record.calibrations if one.error is None]
    if len(totals) < 2 or not min(totals):
        return
    first, last = totals[0], totals[-1]
    if abs(last - first) > DRIFT * first:
        yield (
            f"the paths carried {format_bps(first)} without shaping before the traffic and "
            f"{format_bps(last)} after it: the machine is not the same all along"
        )


def of_requests(latency: Latency) -> Iterator[Cause]:
    """Yield why requests do not hold in one phase, or prove nothing, repetition by repetition."""
    for number, took in latency.repetitions.items():
        count = took.exchanges if took else 0
        if took is None or count < FEWEST_SAMPLES:
            text = f"{count} exchanges are too few to tell (at least {FEWEST_SAMPLES})"
            yield _cause(latency, number, "measurement", text, count, FEWEST_SAMPLES, "exchanges")
            continue
        if _too_late(latency.requests, took):
            most = LATE_SHARE * took.judged_s
            text = (
                f"the generator itself was up to {format_seconds(took.lateness_p99_s)} late in 99 % of the "
                f"exchanges, more than a tenth of the {format_seconds(took.judged_s)} that they took: "
                "the machine was too slow for these requests"
            )
            yield _cause(latency, number, "machine", text, took.lateness_p99_s, most, "generator")
        if misses := _slow(latency.requests, took):
            yield _missed(latency, number, misses, _excuse(latency.requests, took, misses.keys()))


def missed_by_requests(latency: Latency) -> dict[int, tuple[Topic, ...]]:
    """Return of each repetition with exchanges which thresholds were missed; nothing without thresholds."""
    if not latency.requests.judged:
        return {}
    return {
        number: tuple(_slow(latency.requests, took))
        for number, took in latency.repetitions.items()
        if took is not None
    }


def _too_late(requests: Requests, took: Took) -> bool:
    """Tell whether what is reported is the generator's own lateness more than it may be."""
    allowed = next((seconds for rate, seconds in ALLOWED.items() if requests.rate <= rate), 0.0)
    return took.lateness_p99_s > max(LATE_SHARE * took.judged_s, allowed)


def _slow(requests: Requests, took: Took) -> Misses:
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
    if few or missed.isdisjoint(_slow(requests, took.sound or took)):
        return (
            f"; during {took.doubtful} exchanges the machine stood still, was saturated, or lacked what its "
            "host gave to others, so it may be the machine"
        )
    return ""
