"""Which backend for a cluster? Every one that this machine can run, measured alike.

The study is a directory of ordinary recordings - promises on a full link, requests on an idle one -, with
``measured/``, where everything else is, and ``backends.json``, in which all of it is summed up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.analysis import next_steps
from bench.measurement.display import Displays
from bench.recording import atomic, requests
from bench.recording.directory import Recording
from bench.recording.records import Request, StudyRequest
from bench.studies.backends import VERB, measuring, results
from bench.studies.backends.index import (
    COST,
    FIRST,
    GUARANTEE,
    NODES,
    PARTS,
    ROUND_TRIP,
    THROUGHPUT,
    Backends,
    Measured,
    RecordedPart,
    Row,
    read,
)
from bench.studies.backends.measuring import PAIR, Datapath, Wanted, files, measure, throughput_files
from bench.studies.backends.probes import scenarios
from bench.studies.backends.records import Cost, Exchanges, Nodes, Throughput
from bench.studies.backends.results import firsts, round_trips
from bench.studies.ground import ground, refuse_elsewhere
from bench.studies.measured import MeasuredStudy
from bench.studies.study import Case, Promised, Spread, chosen, number, numbers
from testbed.scenario import Scenario, ScenarioError

# The recordings, by part: the scenario, and what is set in it beside the backend. On links that are too slow
# for all that wants to pass, enforcement node can keep a promise.
RECORDED: dict[RecordedPart, tuple[str, tuple[str, ...]]] = {
    GUARANTEE: ("congested", ("enforcement=node",)),
    ROUND_TRIP: ("backends/round-trip", ()),
}
ROUNDS = {THROUGHPUT: 12, COST: 5, FIRST: 5}
SIZES = (3, 10, 30, 60)
LEAST_NODES, MOST_NODES = 3, 200

Lack = Callable[[Datapath], str | None]


def lack(datapath: Datapath) -> str | None:
    """Return why this machine cannot run a datapath: it is tried. None if it can."""
    scenario = scenarios.of_nodes(datapath.cluster, PAIR)
    try:
        with ground(scenario):
            return None
    except (LookupError, RuntimeError) as error:
        words = str(error.args[0] if error.args else error).partition("\n")[0]
        return words.removeprefix(f"scenario {scenario.name}: clusters.{scenarios.CLUSTER}.backend: ")


class BackendsStudy(MeasuredStudy):
    """Every backend that this machine can run."""

    name = "backends"
    verb = VERB
    model = Backends
    package = __package__
    leads_to = next_steps.LAST
    keeps_failures = True

    def __init__(self, lack: Lack = lack) -> None:
        self._lack = lack
        self._lacks: dict[str, str | None] = {}

    def cases(self, asked: StudyRequest) -> Sequence[Case]:
        """Return the recordings of each backend. Raises LookupError for what cannot be asked for."""
        refuse_elsewhere(asked)
        wanted = self._wanted(asked)
        return [self._case(asked, datapath, part) for part in RECORDED for datapath in wanted.of(part)]

    def measure(self, asked: StudyRequest, directory: Path, displays: Displays) -> None:
        """Measure what is no recording, of the datapaths that this machine can run."""
        wanted = self._wanted(asked)
        cannot = read(directory).cannot
        able = [datapath for datapath in wanted.datapaths if datapath.name not in cannot]
        measure(replace(wanted, datapaths=able), directory, displays(self.name).stage)

    def whole_index(self, asked: StudyRequest, cases: Sequence[Case], rows: Sequence[Any]) -> Backends:
        """Return ``backends.json`` with what was asked for, and what cannot be run."""
        wanted = self._wanted(asked)
        reasons = {datapath.name: self._why(datapath) for datapath in wanted.datapaths}
        return Backends(
            backends=list(reasons),
            cannot={name: reason for name, reason in reasons.items() if reason},
            parts=list(wanted.parts),
            rows=list(rows),
        )

    def summed_up(self, directory: Path) -> Backends:
        """Return the index with all that the recordings and the files in ``measured/`` show."""
        index, summaries = read(directory), self.summaries(directory)
        rows = [
            row.model_copy(update={"verdict": result.verdict}) if result else row
            for row, result in zip(index.rows, summaries, strict=True)
        ]
        carried, invalid = results.throughputs(
            atomic.read(file, Throughput) for file in throughput_files(directory)
        )
        first = next(iter(carried.values()), {})
        asking = {
            row.backend: round_trips(Recording(directory / row.recording))
            for row in rows
            if row.part == ROUND_TRIP and row.recording
        }
        measured = {
            name: Measured(
                throughput_bps=Spread.of(carried.get(name, {}).values()),
                of_first=results.shares(carried.get(name, {}), first),
                throughput_invalid=[words for words in invalid if f": {name}: " in words],
                cost=results.packet_costs([atomic.read(file, Cost) for file in files(directory, name, COST)]),
                first=firsts(atomic.read(file, Exchanges) for file in files(directory, name, FIRST)),
                round_trips=asking.get(name, []),
                sizes=[results.size(atomic.read(file, Nodes)) for file in files(directory, name, NODES)],
            )
            for name in index.backends
            if name not in index.cannot
        }
        return index.model_copy(update={"rows": rows, "measured": measured})

    def valid(self, directory: Path) -> bool:
        """Tell whether nothing that could be run is invalid."""
        found = self.summed_up(directory)
        # Without a promise there is nothing to hold, and requests on an idle datapath are judged here.
        verdicts = [row.verdict for row in found.rows if row.part == GUARANTEE]
        return "invalid" not in verdicts and not any(_missing(found))

    def promised(self, directory: Path) -> Sequence[Promised]:
        """Return the recordings with promises: on a full link they are to hold under each backend."""
        return [
            Promised(f"{row.scenario}, {row.backend}", row.recording, result.verdict)
            for row, result in zip(self.rows(directory), self.summaries(directory), strict=True)
            if row.recording and result and any(flow.guarantee_bps for flow in result.flows)
        ]

    def notes(self, directory: Path) -> Sequence[str]:
        """Return which backends could not be run, and which numbers are left out, and why."""
        found = self.summed_up(directory)
        cannot = [f"not run: {name}: {reason}" for name, reason in found.cannot.items()]
        failed = [f"not run: {row.backend}: {row.reason}" for row in found.rows if row.reason]
        return list(dict.fromkeys([*cannot, *failed, *_invalid(found)]))

    def _case(self, asked: StudyRequest, datapath: Datapath, part: RecordedPart) -> Case:
        scenario, settings = RECORDED[part]
        row = Row(backend=datapath.name, scenario=scenario, part=part)
        reason, name = self._why(datapath), f"{scenario}, {datapath.name}"
        if reason is None:
            try:
                request, read = _request(asked, datapath, part)
                return Case(name, request, read, row, promised=part == GUARANTEE)
            except ScenarioError as error:
                reason = str(error)
        return Case(name, asked.case(scenario, settings), None, row.model_copy(update={"reason": reason}))

    def _why(self, datapath: Datapath) -> str | None:
        """Return why a datapath cannot be run; it is tried once."""
        if datapath.name not in self._lacks:
            self._lacks[datapath.name] = self._lack(datapath)
        return self._lacks[datapath.name]

    def _wanted(self, asked: StudyRequest) -> Wanted:
        known = measuring.known()
        names = dict.fromkeys(chosen(asked, "backend", known))
        parts = chosen(asked, "part", PARTS)
        times = number(asked, "repetitions", range(1, 1001))
        return Wanted(
            datapaths=[known[name] for name in names],
            parts=[part for part in PARTS if part in parts],
            rounds={part: times or rounds for part, rounds in ROUNDS.items()},
            sizes=sorted(set(numbers(asked, "nodes", range(LEAST_NODES, MOST_NODES + 1)))) or SIZES,
            seed=number(asked, "seed", range(2**32)) or 0,
        )


def _request(asked: StudyRequest, datapath: Datapath, part: RecordedPart) -> tuple[Request, Scenario]:
    """Return the run of a part with every cluster on a backend, or with one, if only one may be.

    Raises ScenarioError.
    """
    scenario, settings = RECORDED[part]
    kept = (*settings, *asked.overrides)
    clusters = list(requests.read(asked.case(scenario, kept)).clusters)
    all_of_them = [setting for cluster in clusters for setting in datapath.overrides(cluster)]
    request = asked.case(scenario, (*all_of_them, *kept))
    try:
        return request, requests.read(request)
    except ScenarioError:
        request = asked.case(scenario, (*datapath.overrides(clusters[0]), *kept))
        return request, requests.read(request)


def _missing(found: Backends) -> Iterator[str]:
    """Yield whose numbers were measured and are not there, because no run of them was valid."""
    for name, measured in found.measured.items():
        costs = any(one.invalid and one.ns is None for one in measured.cost)
        carried = measured.throughput_invalid and measured.throughput_bps is None
        events = [event for one in measured.sizes for event in one.events]
        moved = any(one.invalid for one in measured.sizes) or any(event.too_late for event in events)
        if costs or carried or moved:
            yield name


def _invalid(found: Backends) -> Iterator[str]:
    """Yield, in words, which numbers say nothing, and why."""
    for name, measured in found.measured.items():
        for words in (measured.throughput_invalid, *(one.invalid for one in measured.cost)):
            more = f" (and {len(words) - 1} more)" if len(words) > 1 else ""
            yield from (f"invalid: {name}: {first}{more}" for first in words[:1])
        for one in measured.sizes:
            late = [event for event in one.events if event.too_late]
            words = [f"{event.event}: probes were {event.late_s * 1e3:.0f} ms late" for event in late]
            yield from (f"invalid: {name}: {one.nodes} nodes: {word}" for word in [*one.invalid, *words])
