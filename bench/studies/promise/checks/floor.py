"""Does a pod get at least what it was promised, whoever else wants the link?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench.observations.causes import Cause
from bench.recording import queues
from bench.recording.atomic import StoredError
from bench.recording.queues import Reading
from bench.recording.records import Repetition, slug
from bench.studies.promise import protection, records
from bench.studies.promise.check import (
    MEASURED,
    Check,
    Evidence,
    Found,
    Ground,
    Judgement,
    Number,
    Ran,
    Run,
    Runs,
    Short,
    always,
    kept,
    register,
)
from bench.studies.promise.checks import measured
from bench.studies.promise.records import Asked, Datapath, Round, Rounds, Steps, Watched
from testbed.scenario.frames import expected_goodput
from testbed.scenario.goodput import expected_goodput_of
from testbed.scenario.networks import path_of
from testbed.scenario.units import format_bps, format_rate, format_share, unit_for

PROMISED = "promised"  # the flow that all of these scenarios have
# The share of its link that the pod was promised, and what all of the link's payload is at least.
HALF, MOST_OF_LINK = 0.5, 0.9
LONGEST_S = 0.05  # until a floor holds
FEWEST = 5  # rounds of which nothing is in doubt
CONTROL_S = 0.1  # that 99 of 100 answers take at most


def _half(**scenarios: str) -> Runs:
    """Return what says a check's runs, by name, in each of which half of the link is promised.

    A scenario's own promise is that; another is set if another link than the scenario's was asked for.
    """

    def runs(ground: Ground) -> Mapping[str, Run]:
        half = format_rate(int(HALF * ground.link_bps))
        settings = (f"pods.promised.guarantee={half}",) if ground.asked.choices.get("link") else ()
        return {name: Run(scenario, settings) for name, scenario in scenarios.items()}

    return runs


def _received(**scenarios: str) -> Runs:
    """Return the same where half of the receiver's link is promised, too, to networks that can be told."""

    def runs(ground: Ground) -> Mapping[str, Run]:
        half = format_rate(int(HALF * ground.link_bps))
        told = ground.asked.choices.get("link") and "arrival" in ground.claims
        received = (f"pods.receiver.ingress={half}",) if told else ()
        return {
            name: replace(run, settings=(*run.settings, *received))
            for name, run in _half(**scenarios)(ground).items()
        }

    return runs


def _beside(evidence: Evidence) -> Judgement:
    """Return whether the promised flow met the scenario's thresholds as long as others sent."""
    ran = evidence.runs["beside"]
    had, doubts = disturbed(ran, "beside"), _doubts(ran, PROMISED)
    if had.found != "invalid" and doubts:
        return replace(had, found="invalid", words=f"{had.words}; {doubts[0].text}", short=())
    return had


def _doubts(ran: Ran, *flows: str) -> list[Cause]:
    """Return what speaks against a run; with flows, what is about others than these is left out."""
    return [
        one
        for one in ran.summary.causes
        if one.kind != "promise" and (not flows or one.flow in (None, *flows))
    ]


def disturbed(ran: Ran, run: str) -> Judgement:
    """Return whether the promised flow had its floor beside others, whatever speaks against the run."""
    flow = ran.flow(PROMISED)
    expected, phase = (flow.expected_goodput_bps, flow.phases.get("disturbed")) if flow else (None, None)
    if expected is None or phase is None:
        doubt = next((cause.text for cause in ran.summary.causes), "nothing was measured beside others")
        return Judgement("invalid", doubt)
    thresholds, judged = ran.scenario.thresholds, phase.judged
    attained = judged.attainment or 0.0
    numbers = [
        Number("mean", round(judged.mean_bps, 1), "bit/s", round(thresholds.mean * expected, 1)),
        Number("samples with nine tenths", round(attained, 4), "share", thresholds.attainment),
    ]
    unit = unit_for([expected])
    words = (
        f"{format_bps(judged.mean_bps, unit)}, {format_share(judged.mean_bps / expected)} of the expected "
        f"{format_bps(expected, unit)}; {format_share(attained)} of the samples had nine tenths of it"
    )
    if phase.met:
        return Judgement("held", words, numbers)
    return Judgement("violated", words, numbers, short(ran, run, expected))


def short(ran: Ran, run: str, expected_bps: float) -> list[Short]:
    """Return the samples of the promised flow that fell short, after its beginning."""
    mine = ran.warm(PROMISED)
    low = mine[mine["bits_per_second"] < ran.scenario.thresholds.sample * expected_bps]
    return [
        Short(run, PROMISED, int(row.repetition), float(row.start_s), float(row.end_s))
        for row in low.itertuples()
    ]


def _idle(evidence: Evidence) -> Judgement:
    """Return whether the promised flow, alone, had most of the link."""
    ran = evidence.runs["idle"]
    flow, rate = ran.flow(PROMISED), ran.scenario.underlay.rate
    phase = flow.phases.get("quiet") if flow else None
    if phase is None or rate is None:
        return Judgement("invalid", "nothing was measured" if rate else "nobody knows the link's rate")
    mtu, overhead = path_of(ran.scenario, PROMISED)
    takes = overhead + ran.scenario.underlay.frame_overhead
    share = phase.mean_bps / expected_goodput(rate, mtu, "tcp", "layer2", takes)
    number = Number("share of the link", round(share, 4), "share", MOST_OF_LINK)
    words = f"{format_bps(phase.mean_bps)}, {format_share(share)} of what the link carries"
    if share >= MOST_OF_LINK:
        return Judgement("held", words, [number])
    if doubts := _doubts(ran):
        return Judgement("invalid", f"{words}; {doubts[0].text}", [number])
    return Judgement("violated", words, [number])


def _incast(evidence: Evidence) -> Judgement:
    """Return what was left where others meet the flow only as it arrives, whatever speaks against the run.

    Who claims nothing of that has numbers: a link that happened to have room tells nothing of a full one.
    """
    found = {name: disturbed(ran, name) for name, ran in evidence.runs.items()}
    doubts = [one.text for ran in evidence.runs.values() for one in _doubts(ran, PROMISED)]
    states = {one.found for one in found.values()}
    worst: Found = "violated" if "violated" in states else "invalid" if "invalid" in states else "held"
    words = [f"beside {name}: {one.words}" for name, one in found.items()]
    return Judgement(
        "invalid" if doubts else worst,
        "; ".join([*words, *doubts[:1]]),
        [
            replace(number, name=f"{number.name} beside {name}")
            for name, one in found.items()
            for number in one.numbers
        ],
        [each for one in found.values() for each in one.short],
    )


def _protection(evidence: Evidence) -> Judgement:
    """Return whether the floor held soon after a neighbour began, in every repetition without a doubt."""
    ran = evidence.runs["begins"]
    flow = ran.scenario.flows[0]
    floor = expected_goodput_of(ran.scenario, flow)
    assert ran.recording is not None
    assert floor is not None, "the scenario promises it something"
    path, node = Datapath.of(ran.scenario, flow.label), ran.scenario.nodes_of(flow)[1]
    found = {}
    for number, repetition in enumerate(ran.recording.run_record().repetitions):
        directory = ran.recording.repetition_directory(number)
        try:
            readings = list(queues.read(directory / queues.file_name(slug(node))))
            watched = _leaving(directory, path)
        except StoredError as error:
            return Judgement("invalid", f"repetition {number}: {error}")
        one = _round(f"repetition {number + 1}", floor, readings, repetition, flow.duration)
        if one is not None:
            found[number] = one.model_copy(update={"way": path, "watched": watched})
    return soon(found, "begins", PROMISED)


def _leaving(directory: Path, path: Datapath) -> list[Watched]:
    """Return what is kept of the node that a flow leaves by, if anything."""
    file = directory / queues.file_name(path.leaves)
    return [Watched(place=path.leaves, readings=list(queues.changes(file)))] if file.exists() else []


def _round(
    name: str, floor_bps: float, readings: Sequence[Reading], one: Repetition, seconds: float
) -> Round | None:
    """Return a repetition from its neighbour's beginning to the end of the flow; None: it was not counted."""
    device, transfers = records.busiest(readings), one.transfers
    begins = [transfer for label, transfer in transfers.items() if label != PROMISED]
    if device is None or any(transfer.error for transfer in transfers.values()) or not begins:
        return None
    points = records.payload(readings, device, "tcp")
    since_s, until_s = begins[0].started_s, transfers[PROMISED].started_s + seconds
    if not points or points[0][0] > since_s or points[-1][0] < until_s:
        return None  # the machine had no time to count
    return Round(
        name=name,
        floor_bps=floor_bps,
        points=points,
        since_s=since_s,
        until_s=until_s,
        stalls=one.stalls,
        saturated=one.saturated,
    )


def soon(rounds: Mapping[int, Round], run: str, label: str) -> Judgement:
    """Return whether a floor held soon enough in every round of which nothing is in doubt.

    ``run`` and ``label`` are what a flow's rounds, each with its number, are known by (check.Short).
    """
    numbers, doubtful, slow = [], 0, []
    for count, one in rounds.items():
        took = protection.held_after_s(one.points, one.floor_bps, one.since_s, one.until_s)
        if took is None or took > LONGEST_S:
            doubts = [*protection.excuses(one), *protection.room(one)]
            excused = protection.held_after_s(one.points, one.floor_bps, one.since_s, one.until_s, doubts)
            if excused is not None and excused <= LONGEST_S:
                doubtful += 1
                continue
            until_s = one.until_s if took is None else one.since_s + took
            slow.append(Short(run, label, count, one.since_s, until_s))
        value = one.until_s - one.since_s if took is None else took
        numbers.append(Number(one.name, round(value, 4), "s", None, LONGEST_S))
    worst = max((number.value for number in numbers), default=0.0)
    words = f"within {worst * 1e3:.0f} ms in each of {len(numbers)} rounds"
    if slow:
        words = f"after {worst * 1e3:.0f} ms at the latest; too late in {len(slow)} of {len(numbers)} rounds"
    if doubtful:
        words += f"; in {doubtful} more the machine had no time to spare, or left the link with room"
    found: Found = "violated" if slow else "held" if len(numbers) >= FEWEST else "invalid"
    return Judgement(found, words, numbers, slow)


def _room(evidence: Evidence) -> Judgement:
    """Return whether what does not fit was refused, and what does fit was not."""
    found = kept(evidence, Steps)
    beside_first, instead, back = found.steps
    refused = [one for one in (beside_first, back) if not one.came]
    words = [f"refused {len(refused)} of 2 that did not fit"]
    words += ["let the second in once the first had gone" if instead.came else f"no room: {instead.words}"]
    words += [f"in its words: {beside_first.words}"] if not beside_first.came else []
    words += found.faults
    numbers = [
        Number("refused of 2 that did not fit", len(refused), "1", 2),
        Number("let in of 1 that did", int(instead.came), "1", 1),
    ]
    good = len(refused) == 2 and instead.came and not found.faults
    return Judgement("held" if good else "violated", "; ".join(words), numbers)


def _control(evidence: Evidence) -> Judgement:
    """Return whether nodes answered in time."""
    numbers, words = [], []
    for one in kept(evidence, Asked).askings:
        answered = sorted(each for each in one.took_s if each is not None)
        lost = len(one.took_s) - len(answered)
        asks = f"{one.from_node} asks {one.to_node}, port {one.port}"
        slowest = answered[min(len(answered) - 1, int(0.99 * len(answered)))] if answered else 0.0
        numbers += [
            Number(f"{asks}: no answer", lost, "1", None, 0),
            Number(f"{asks}: p99", round(slowest, 5), "s", None, CONTROL_S),
        ]
        words.append(f"{asks}: {len(answered)} of {len(one.took_s)} answers, p99 {slowest * 1e3:.1f} ms")
    good = all(number.within for number in numbers)
    return Judgement("held" if good else "violated", "; ".join(words), numbers)


def _arriving(evidence: Evidence) -> Judgement:
    """Return whether a pod that came had its floor soon enough."""
    rounds = kept(evidence, Rounds).rounds
    judged = soon(dict(enumerate(rounds)), MEASURED, measured.LATE)
    faults = [fault for one in rounds for fault in one.faults]
    return replace(judged, found="violated", words=f"{judged.words}; {faults[0]}") if faults else judged


_SAMPLES = (
    "half of the link is promised; beside them the receiver's mean is at least 0.99 of what is expected, and "
    "95 % of its samples have nine tenths of it"
)
_SOON = (
    "from counters that are read by netlink every 10 ms: at most 50 ms until the first moment from which "
    "every 50 ms have nine tenths of the floor, in all of at least five rounds of which nothing is in doubt"
)
_check = partial(Check, profile="floor")

register(
    _check(
        "full-link-1",
        "Does a pod get its share of a full link beside one neighbour?",
        _SAMPLES,
        _beside,
        runs=_half(beside="promise/full-1"),
        threads=(
            "kubernetes/kubernetes/issues/89532",
            "projectcalico/calico/issues/3371",
            "flannel-io/flannel/issues/1270",
        ),
    ),
    _check("full-link-10", "And beside ten?", _SAMPLES, _beside, runs=_half(beside="promise/full-10")),
    _check(
        "full-link-100", "And beside a hundred?", _SAMPLES, _beside, runs=_half(beside="promise/full-100")
    ),
    _check(
        "idle-capacity",
        "Does a pod that was promised a fifth of a link get all of it while nobody else wants it?",
        "the mean at the receiver is at least 0.9 of what the link carries",
        _idle,
        runs=always(idle="promise/idle"),
    ),
    _check(
        "protection-from-a-neighbour",
        "How soon does the floor hold once a neighbour has begun to fill the link?",
        f"four streams of TCP begin; {_SOON}",
        _protection,
        runs=_half(begins="promise/protection"),
    ),
    _check(
        "protection-from-add",
        "How soon does the floor of a pod hold that comes to a full link?",
        f"it sends once ADD has returned, or once it is ready where others call that; {_SOON}",
        _arriving,
        make=measured.arriving,
        seconds=25,
        lack=measured.lacks_own_pods,
    ),
    _check(
        "room",
        "Is too large a sum of promises refused, and does a pod that goes make room?",
        "two pods, of which the link has room for either: the second is refused beside the first, let in "
        "after it, and then the first is refused",
        _room,
        make=measured.room,
        seconds=5,
        lack=measured.lacks_own_pods,
        threads=("kubernetes/kubernetes/issues/40270",),
    ),
    _check(
        "control-traffic",
        "Can a node be reached by who repairs it while its link is full?",
        "a connection to its first control port every 50 ms, in both directions: each is answered within "
        "3 s, and 99 of 100 within 100 ms",
        _control,
        make=measured.control,
        seconds=10,
        lack=measured.lacks_own_ports,
        threads=("aws/containers-roadmap/issues/1543", "kubernetes/kubernetes/issues/131047"),
    ),
    _check(
        "incast",
        "What is left of a promise where three nodes send to one receiver's link?",
        "two other nodes send four streams of TCP each, or 800 Mbit/s of UDP each: the flow has the mean and "
        "the samples that its scenario asks for. No promise of a sender's side alone can hold there",
        _incast,
        runs=_received(TCP="promise/incast", UDP="promise/incast-udp"),
        about="arrival",
    ),
)
