"""Who took what a flow did not get: what each queue on its path did while it was outside its promise.

Of recordings, where that was, too: at its sender, on a trunk, at its receiver (bench.analysis.bottleneck).
And what the flow took itself: how many processor seconds a kept Gbit cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.analysis import bottleneck
from bench.analysis.phases import Span
from bench.analysis.summary import FlowSummary
from bench.recording import atomic, queues
from bench.recording.directory import BESIDE, part_of
from bench.recording.queues import DEVICE, Queue, Reading
from bench.studies.promise.check import MEASURED, Evidence, Ran, Short, kept
from bench.studies.promise.index import Taken, Took
from bench.studies.promise.records import Datapath, Rounds

BETWEEN = 2  # where on a path the switch is: after the sending node, before the receiving one


def took(evidence: Evidence, short: Sequence[Short]) -> list[Took]:
    """Return for each flow what the queues did meanwhile. Raises StoredError and ScenarioError."""
    found = []
    for run, flow, repetition in dict.fromkeys((one.run, one.flow, one.repetition) for one in short):
        mine = [one for one in short if (one.run, one.flow, one.repetition) == (run, flow, repetition)]
        watched = _in_round(evidence, repetition) if run == MEASURED else _in_run(evidence.runs[run], mine)
        if watched is not None:
            found.append(_took(watched, mine))
    return found


@dataclass(frozen=True)
class _Watched:
    """What is known of the queues on a flow's path."""

    where: str  # it is kept, below the study's directory
    path: Datapath
    places: Mapping[str, Sequence[Reading]]
    lost: str | None = None  # where it was, in words; None: nobody counted what links carried


def _in_run(ran: Ran, short: Sequence[Short]) -> _Watched | None:
    """Return what a recording has of one repetition of a flow."""
    if ran.recording is None:
        return None
    label = short[0].flow
    places = queues.all_of(ran.recording.repetition_directory(short[0].repetition))
    flow = next((one for one in ran.scenario.flows if one.label == label), None)
    lost = None
    if flow is not None and ran.counted:
        low = [Span(one.start_s, one.end_s) for one in short]
        lost = bottleneck.where(ran.scenario, flow, places, ran.counted, low).text
    return _Watched(ran.recording.run_id, Datapath.of(ran.scenario, label), places, lost)


def _in_round(evidence: Evidence, number: int) -> _Watched | None:
    """Return what is kept of a round that is no recording."""
    one = kept(evidence, Rounds).rounds[number]
    if one.way is None or evidence.measured is None:
        return None
    places = {each.place: list(queues.whole(each.readings)) for each in one.watched}
    return _Watched(f"{BESIDE}/{evidence.measured.name}", one.way, places)


def _took(watched: _Watched, short: Sequence[Short]) -> Took:
    """Return what passed, was dropped or waited on a flow's path, and what others sent meanwhile."""
    path, on_path, others = watched.path, list[tuple[int, Taken]](), list[Taken]()
    order = {path.sender: 0, path.leaves: 1, path.arrives: 3}
    for place, readings in watched.places.items():
        for taken in _at(place, readings, short):
            if place in path.others:
                others += [taken] if taken.kind == DEVICE and taken.bytes else []
            elif taken.kind != DEVICE and (place in order or place not in path.nodes):
                on_path.append((order.get(place, BETWEEN), taken))
    on_path.sort(key=lambda one: (one[0], one[1].place, one[1].device, -one[1].bytes, one[1].handle))
    return Took(
        flow=short[0].flow,
        recording=watched.where,
        repetition=short[0].repetition,
        seconds=round(sum(one.end_s - one.start_s for one in short), 3),
        lost=watched.lost,
        queues=[taken for _, taken in on_path],
        others=sorted(others, key=lambda one: (-one.bytes, one.place, one.device)),
    )


def _at(place: str, readings: Sequence[Reading], short: Sequence[Short]) -> Iterator[Taken]:
    """Yield what the queues of one place did in some stretches, if they did anything."""
    spans = [span for one in short if (span := _span(readings, one))]
    for key in dict.fromkeys(key for span in spans for key in span[-1].queues):
        each = [[one for reading in span if (one := reading.queues.get(key))] for span in spans]
        each = [counted for counted in each if counted]
        passed = sum(_more(counted, "bytes") for counted in each)
        dropped = sum(_more(counted, "drops") for counted in each)
        backlog = max((one.backlog for counted in each for one in counted), default=0)
        if passed or dropped or backlog:
            yield Taken(
                place=place,
                device=key[0],
                kind=key[1],
                handle=key[2],
                bytes=passed,
                drops=dropped,
                backlog=backlog,
            )


def _span(readings: Sequence[Reading], short: Short) -> list[Reading]:
    """Return the readings of a stretch, from the last one before it to the first one after it."""
    before = [number for number, one in enumerate(readings) if one.at_s <= short.start_s]
    after = [number for number, one in enumerate(readings) if one.at_s >= short.end_s]
    first = before[-1] if before else 0
    last = after[0] if after else len(readings) - 1
    return list(readings[first : last + 1])


def _more(counted: Sequence[Queue], field: str) -> int:
    """Return by how much a counter grew; a queue that was made anew begins at 0."""
    first, last = getattr(counted[0], field), getattr(counted[-1], field)
    return int(last - first if last >= first else last)


GIGABIT = 1e9
LEAST_BPS = 50e6  # with less than this, what processors do anyway is nearly all of it


def cpu_s_per_gbit(ran: Ran) -> float | None:
    """Return the processor seconds of the busiest machine for each Gbit that was promised and arrived.

    What arrived beyond a promise does not count; what it took does. Everything counts that the processors
    did: senders, receivers, the watching. None if too little was promised to tell, or it is not known.
    """
    assert ran.recording is not None
    host = part_of(atomic.read_json(ran.recording.environment_file), "host")
    processors = host.get("processors_usable")
    record = ran.recording.run_record()
    busy = sum(use.busy * (use.end_s - use.start_s) for one in record.repetitions for use in one.cpu)
    watched = sum(use.end_s - use.start_s for one in record.repetitions for use in one.cpu)
    kept = sum(_kept(flow) for flow in ran.summary.flows)
    if not isinstance(processors, int) or not watched or kept < LEAST_BPS:
        return None
    return round(busy / watched * processors / (kept / GIGABIT), 3)


def _kept(flow: FlowSummary) -> float:
    """Return how much of what was promised to a flow arrived, bits per second."""
    phases = flow.phases.values()
    samples = sum(one.samples for one in phases)
    if not flow.expected_goodput_bps or not samples:
        return 0.0
    return min(sum(one.mean_bps * one.samples for one in phases) / samples, flow.expected_goodput_bps)
