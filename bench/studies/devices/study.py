"""What does a way to a device cost, and what does it keep?

The study is a directory of ordinary recordings, promises on a segment's link under each enforcement,
``measured/``, where all else is, and ``devices.json``, in which all of it is summed up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from bench.analysis import next_steps
from bench.analysis.summary import Summary
from bench.measurement.display import Displays
from bench.recording import atomic, requests
from bench.recording.directory import BESIDE
from bench.recording.records import StudyRequest
from bench.studies.devices import VERB, measuring, results, ways
from bench.studies.devices.index import Devices, Row, read
from bench.studies.devices.measuring import PLAN, Lengths
from bench.studies.devices.records import AllClients, AtRest, Round
from bench.studies.devices.ways import BY_NAME, NAMES, Way
from bench.studies.ground import ground, refuse_elsewhere
from bench.studies.measured import MeasuredStudy
from bench.studies.study import Case, Promised, blocks, chosen, number
from testbed.scenario import Scenario
from testbed.testbed import Testbed

SCENARIO, PHASE = "devices/promise", "disturbed"
ENFORCEMENTS = ("none", "pod", "node")
HELD = ("node",)  # those that shall hold on a full link
WAYS: Final = "ways"
HANDLERS: Final = "handlers"
CLIENTS: Final = "clients"
PROMISES: Final = "promises"
PARTS = (WAYS, HANDLERS, CLIENTS, PROMISES)
QUICK = "quick"
ROUNDS = 5
SECONDS, QUICK_SECONDS = 2.0, 0.5  # of exchanges
UP_S = 4.0  # that a testbed takes

Found = TypeVar("Found")


class Wanted(NamedTuple):
    """What is to be measured."""

    ways: Sequence[Way]
    parts: Sequence[str]
    rounds: int
    lengths: Lengths
    seed: int

    @property
    def visit_s(self) -> float:
        """About how long one way takes once."""
        plan = self.lengths.plan
        packets = 2 * plan.idle + plan.lead + plan.window * plan.windows
        return 2 * self.lengths.exchanges_s + self.lengths.flow_s + packets + 1.5


class DevicesStudy(MeasuredStudy):
    """Every way to a device."""

    name = "devices"
    verb = VERB
    model = Devices
    package = __package__
    leads_to = next_steps.LAST

    def cases(self, asked: StudyRequest) -> Sequence[Case]:
        """Return the recordings. Raises LookupError for what cannot be asked for."""
        refuse_elsewhere(asked)
        return [_case(asked, one) for one in ENFORCEMENTS] if PROMISES in _wanted(asked).parts else []

    def probes(self, asked: StudyRequest) -> Mapping[str, float]:
        """Return what is no recording, and about how many seconds each takes."""
        wanted = _wanted(asked)
        took = {
            WAYS: wanted.rounds * (UP_S + len(wanted.ways) * wanted.visit_s),
            HANDLERS: 2 * UP_S,
            CLIENTS: UP_S + 2 * measuring.GONE_SECONDS,
        }
        return {part: seconds for part, seconds in took.items() if part in wanted.parts}

    def measure(self, asked: StudyRequest, directory: Path, displays: Displays) -> None:
        """Measure what is no recording and not there yet."""
        wanted, tell = _wanted(asked), displays(self.name).stage
        beside = directory / BESIDE
        if WAYS in wanted.parts:
            for place, order in enumerate(
                blocks(range(len(wanted.ways)), wanted.rounds, wanted.seed), start=1
            ):
                file = beside / f"round-{place}.json"
                if not file.exists():
                    tell(f"ways: round {place} of {wanted.rounds}")
                    in_turn = [wanted.ways[each] for each in order]
                    atomic.write_model(file, _on(ways.scenario(), _round(in_turn, wanted.lengths, place)))
        if HANDLERS in wanted.parts and not (file := beside / "handlers.json").exists():
            tell("connections of 1, 10 and 100 handlers")
            at_rest = _on(ways.many_handlers(), measuring.at_rest)
            atomic.write_model(file, AtRest(connections=at_rest))
        if CLIENTS in wanted.parts and not (file := beside / "clients.json").exists():
            found = _on(ways.many_clients(), lambda testbed: measuring.clients(testbed, tell))
            atomic.write_model(file, AllClients(clients=found))

    def summed_up(self, directory: Path) -> Devices:
        """Return the index with all that the recordings and the files in ``measured/`` show."""
        index, beside = read(directory), directory / BESIDE
        rows = [
            row.model_copy(update={"verdict": shown.verdict, "attained": attained(shown)}) if shown else row
            for row, shown in zip(index.rows, self.summaries(directory), strict=True)
        ]
        files = sorted(beside.glob("round-*.json"), key=lambda file: int(file.stem.partition("-")[2]))
        at_rest, clients = beside / "handlers.json", beside / "clients.json"
        return index.model_copy(
            update={
                "rows": rows,
                "ways": results.summed_up(atomic.read(file, Round) for file in files),
                "handlers": atomic.read(at_rest, AtRest).connections if at_rest.exists() else [],
                "clients": atomic.read(clients, AllClients).clients if clients.exists() else [],
            }
        )

    def valid(self, directory: Path) -> bool:
        """Tell whether there is a number of everything that was measured."""
        found = self.summed_up(directory)
        return all(one.bits_per_second for one in found.ways) and all(
            row.verdict != "invalid" for row in found.rows
        )

    def promised(self, directory: Path) -> Sequence[Promised]:
        """Return the recordings whose enforcement keeps promises."""
        return [
            Promised(row.case, row.recording, row.verdict)
            for row in self.summed_up(directory).rows
            if row.case in HELD and row.recording and row.verdict
        ]

    def notes(self, directory: Path) -> Sequence[str]:
        """Return which rounds say nothing, and why."""
        return [
            f"invalid: {one.way}: {words}" for one in self.summed_up(directory).ways for words in one.invalid
        ]


def _on(scenario: Scenario, measure: Callable[[Testbed], Found]) -> Found:
    with ground(scenario) as testbed:
        return measure(testbed)


def _round(order: Sequence[Way], lengths: Lengths, place: int) -> Callable[[Testbed], Round]:
    return lambda testbed: measuring.visits(testbed, order, lengths, place)


def _wanted(asked: StudyRequest) -> Wanted:
    """Return what is asked for. Raises LookupError."""
    quick = QUICK in asked.choices
    parts = chosen(asked, "part", PARTS)
    names = chosen(asked, "way", NAMES)
    seconds = asked.duration or (QUICK_SECONDS if quick else SECONDS)
    plan = PLAN._replace(windows=2) if quick else PLAN
    return Wanted(
        ways=[BY_NAME[name] for name in NAMES if name in names],
        parts=[part for part in PARTS if part in parts and not (quick and part in (CLIENTS, PROMISES))],
        rounds=number(asked, "repetitions", range(1, 101)) or (1 if quick else ROUNDS),
        lengths=Lengths(seconds, max(1, round(seconds)), plan),
        seed=number(asked, "seed", range(2**32)) or 0,
    )


def _case(asked: StudyRequest, enforcement: str) -> Case:
    request = asked.case(SCENARIO, (f"enforcement={enforcement}", *asked.overrides))
    held = enforcement in HELD
    return Case(enforcement, request, requests.read(request), Row(case=enforcement), promised=held)


def attained(shown: Summary) -> dict[str, float]:
    """Return the share of what is promised that each promised flow has under the flood."""
    return dict(_attained(shown))


def _attained(shown: Summary) -> Iterator[tuple[str, float]]:
    for flow in shown.flows:
        if flow.expected_goodput_bps and (phase := flow.phases.get(PHASE)):
            yield flow.name, phase.mean_bps / flow.expected_goodput_bps
