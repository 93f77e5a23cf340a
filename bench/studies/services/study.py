"""What do a service's hints keep in a zone, and what does that cost?

The study is a directory of two ordinary recordings, promises to a service of another zone, ``measured/``,
where requests to services are, and ``services.json``, in which all of it is summed up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from bench.analysis import next_steps
from bench.analysis.summary import Summary
from bench.measurement.display import Displays
from bench.recording import atomic, requests
from bench.recording.directory import BESIDE
from bench.recording.records import StudyRequest
from bench.studies.ground import ground, refuse_elsewhere
from bench.studies.measured import MeasuredStudy
from bench.studies.services import VERB, asking, results, situations
from bench.studies.services.index import Row, Services, read
from bench.studies.services.records import Run
from bench.studies.services.situations import BY_NAME, NAMES, Situation
from bench.studies.study import Case, chosen
from edge.services.hints import MODES
from testbed.testbed import Testbed

SCENARIO, FLOW = "services/promise", "A-1 -> web"
# The recordings: a promise to a service, over a trunk with room for all and over one without.
PROMISES: Mapping[str, tuple[str, ...]] = {
    "promise-with-room": (),
    "promise-without-room": ("zones.north.rate=300M",),
}
SECONDS, QUICK_SECONDS = 8.0, 0.7
ATTEMPTS, QUICK_ATTEMPTS = 3, 1  # at a run that the machine spoils
BESIDES_S = 1.0  # that a run takes beside its requests
UP_S = 3.0  # that a testbed takes

QUICK = "quick"


class Wanted(NamedTuple):
    """What is to be measured."""

    cases: Sequence[Situation]
    modes: Sequence[str]
    seconds: float  # of requests
    scale: float  # of the trunks' rates
    promises: Sequence[str]
    attempts: int

    def runs(self) -> Iterator[tuple[Situation, str]]:
        """Yield each case with each mode that it has."""
        for one in self.cases:
            yield from ((one, mode) for mode in self.modes if mode in one.modes)


class ServicesStudy(MeasuredStudy):
    """Every mode of hints in every case."""

    name = "services"
    verb = VERB
    model = Services
    package = __package__
    leads_to = next_steps.LAST

    def cases(self, asked: StudyRequest) -> Sequence[Case]:
        """Return the recordings. Raises LookupError for what cannot be asked for."""
        refuse_elsewhere(asked)
        return [_case(asked, name) for name in _wanted(asked).promises]

    def probes(self, asked: StudyRequest) -> Mapping[str, float]:
        """Return the cases that are no recordings, and about how many seconds each takes."""
        wanted = _wanted(asked)
        took = {one.name: UP_S for one, _ in wanted.runs()}
        for one, _ in wanted.runs():
            took[one.name] += wanted.seconds + BESIDES_S
        return took

    def measure(self, asked: StudyRequest, directory: Path, displays: Displays) -> None:
        """Ask each case's service in each mode, as far as that is not there yet."""
        wanted = _wanted(asked)
        tell = displays(self.name).stage
        missing = [each for each in wanted.runs() if not _file(directory, *each).exists()]
        done = 0
        for scenario, together in groupby(missing, lambda one: situations.scenario(one[0], wanted.scale)):
            with ground(scenario) as testbed:
                for situation, mode in together:
                    done += 1
                    tell(f"{done} of {len(missing)}: {situation.name}, hints {mode}")
                    run = _asked(testbed, situation, mode, wanted, tell)
                    atomic.write_model(_file(directory, situation, mode), run)

    def summed_up(self, directory: Path) -> Services:
        """Return the index with all that the recordings and the files in ``measured/`` show."""
        index = read(directory)
        rows = [
            row.model_copy(update={"verdict": shown.verdict, "attained": attained(shown)}) if shown else row
            for row, shown in zip(index.rows, self.summaries(directory), strict=True)
        ]
        files = sorted((directory / BESIDE).glob("*/*.json"))
        found = results.summed_up(atomic.read(file, Run) for file in files)
        return index.model_copy(update={"rows": rows, "results": found})

    def valid(self, directory: Path) -> bool:
        """Tell whether nothing is invalid."""
        found = self.summed_up(directory)
        return not any(one.invalid for one in found.results) and all(
            row.verdict != "invalid" for row in found.rows
        )

    def notes(self, directory: Path) -> Sequence[str]:
        """Return which numbers say nothing, and why."""
        return [
            f"invalid: {one.case}, hints {one.mode}: {one.invalid[0]}"
            for one in self.summed_up(directory).results
            if one.invalid
        ]


def _wanted(asked: StudyRequest) -> Wanted:
    """Return what is asked for. Raises LookupError."""
    quick = QUICK in asked.choices
    names = chosen(asked, "case", (*NAMES, *PROMISES))
    modes = chosen(asked, "mode", MODES)
    return Wanted(
        # What happens to a service takes longer than there is in a hurry.
        cases=[one for name, one in BY_NAME.items() if name in names and not (quick and one.event)],
        modes=[mode for mode in MODES if mode in modes],
        seconds=asked.duration or (QUICK_SECONDS if quick else SECONDS),
        scale=asked.scale,
        promises=[] if quick else [name for name in PROMISES if name in names],
        attempts=QUICK_ATTEMPTS if quick else ATTEMPTS,
    )


def _case(asked: StudyRequest, name: str) -> Case:
    request = asked.case(SCENARIO, (*PROMISES[name], *asked.overrides))
    return Case(name, request, requests.read(request), Row(case=name))


def _asked(
    testbed: Testbed, situation: Situation, mode: str, wanted: Wanted, tell: Callable[[str], None]
) -> Run:
    """Ask, and once more if the machine was not as it should be. Raises RuntimeError."""
    for _ in range(wanted.attempts):
        run = asking.ask(testbed, situation, mode, wanted.seconds)
        faults = results.faults(run)
        if not faults:
            break
        tell(f"{situation.name}, hints {mode}: {faults[0]}")
    return run


def _file(directory: Path, situation: Situation, mode: str) -> Path:
    return directory / BESIDE / situation.name / f"{mode}.json"


def attained(shown: Summary) -> float | None:
    """Return the share of what is expected that the promised flow has while others want the trunk."""
    for flow in shown.flows:
        if flow.name == FLOW and flow.expected_goodput_bps and (phase := flow.phases.get("disturbed")):
            return phase.mean_bps / flow.expected_goodput_bps
    return None
