"""What a study is: several runs that answer one question together.

Its directory holds an ordinary recording for each case; ``NAME.json``, the index, which says which recording
is which case; and ``request.json``, what was asked for. Tables, figures and pages are functions of these.
"""

from __future__ import annotations

import random
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from pydantic import BaseModel, ConfigDict

from bench.analysis import next_steps, summary
from bench.analysis.next_steps import NextStep, NextStudy
from bench.analysis.verdict import Outcome
from bench.console.verb import Verb
from bench.presentation.figures.sheet import PAGE, Sheet
from bench.recording import atomic, requests
from bench.recording.directory import BESIDE, CRATE, UNFINISHED, Recording
from bench.recording.records import Request, StudyRequest
from testbed.registry import KINDS
from testbed.scenario import Scenario
from testbed.scenario.enforcements import receiving
from testbed.scenario.words import Part

if TYPE_CHECKING:
    from rich.console import RenderableType

    from bench.measurement.display import Displays


REQUEST = "request.json"


def request(directory: Path) -> StudyRequest | None:
    """Return what a study was asked for; None: it is from before that was recorded. Raises StoredError."""
    with atomic.remedy("restore it; without it the study can be shown, but not resumed"):
        return atomic.read(directory / REQUEST, StudyRequest) if (directory / REQUEST).exists() else None


Drawn = Mapping[str, Mapping[str, bytes]]  # the files of each figure, by its name and their format


def figure_files(drawn: Drawn, sheet: Sheet) -> dict[str, bytes]:
    """Return figures' files by path in the directory."""
    return {
        f"figures/{sheet.file(name, kind)}": content
        for name, files in drawn.items()
        for kind, content in files.items()
    }


def read_index(file: Path, kind: type[atomic.Model]) -> atomic.Model:
    """Return what a study's index holds. Raises StoredError."""
    with atomic.remedy("restore it: nothing else says which recording is which case"):
        return atomic.read(file, kind)


class Row(Protocol):
    """What the index says of one case, whatever else is in it."""

    recording: str | None  # its directory within the study's; None: there is none (yet)
    reason: str | None  # why there is none, nor will be


@dataclass(frozen=True)
class Case:
    """One run of a study, read and checked before anything is started."""

    name: str  # as people are told it
    request: Request
    scenario: Scenario | None  # None: it cannot be run, which its row gives the reason of
    row: Any  # a Row of the study's own, a model that is as yet without a recording
    promised: bool = False  # whether it shall hold, so that a gate may ask


class Promised(NamedTuple):
    """A case that shall hold, and what became of it."""

    case: str  # as people are told it
    recording: str
    verdict: str


@dataclass(frozen=True)
class Visit:
    """One time that a case is run."""

    case: int  # its place among the study's
    until: int | None = None  # how many repetitions there are then; None: all


class Stored(BaseModel):
    """Base of what an index holds: an unknown field is an error."""

    model_config = ConfigDict(extra="forbid")


class Spread(Stored):
    """Several runs of the same."""

    median: float
    least: float
    most: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread | None:
        """Return that of several values; None of nothing."""
        found = sorted(values)
        if not found:
            return None
        return cls(median=median(found), least=found[0], most=found[-1], count=len(found))

    @property
    def share(self) -> float:
        """How far apart they are, as a share of the median."""
        return (self.most - self.least) / self.median if self.median else 0.0


class NamedRow(Stored):
    """A Row for studies that have nothing to add."""

    case: str
    recording: str | None = None
    reason: str | None = None


class Index(Stored):
    """An index of such rows."""

    schema_version: int = 1
    rows: list[NamedRow]


class Study(ABC):
    """Which cases a question needs, and what is made of their recordings."""

    name: ClassVar[str]  # of its directories and its index
    verb: ClassVar[Verb | None] = None  # its own on the command line; None: ``study NAME``
    choices: ClassVar[Sequence[str]] = ()  # what it alone may be asked for, if it has no verb of its own
    leads_to: ClassVar[NextStudy | None] = None  # what to run after it
    keeps_failures: ClassVar[bool] = False  # a case that cannot be brought up is a result, and not the end
    model: ClassVar[Any] = Index  # of its index, which has ``rows``
    compares: ClassVar[bool] = False  # two such studies are compared case by case, as ``compared`` names them
    settings: Part | None = None  # its own, where a scenario says nothing; ``given`` has what one says

    @property
    def command(self) -> str:
        """The verb that runs it."""
        return self.verb.name if self.verb else f"study {self.name}"

    @property
    def flags(self) -> Sequence[str]:
        """What it alone may be asked for and is there or not."""
        return self.verb.flags if self.verb else ()

    def index_file(self, directory: Path) -> Path:
        """Return the path of the index, by which a study's directory is known, too."""
        return directory / f"{self.name}.json"

    def given(self, scenario: Scenario) -> Any:
        """Return the study's settings, if it has any, as a scenario of its cases says them."""
        (settings,) = KINDS["study"].handed(self.name, scenario.settings)
        return settings

    @abstractmethod
    def cases(self, asked: StudyRequest) -> Sequence[Case]:
        """Return every case that is asked for. Raises LookupError for what cannot be, before it is begun."""

    def visits(self, asked: StudyRequest, cases: Sequence[Case]) -> Sequence[Visit]:
        """Return in which order the cases are run; one may be visited for each of its repetitions."""
        return [Visit(number) for number in range(len(cases))]

    def probes(self, asked: StudyRequest) -> Mapping[str, float]:
        """Return what ``measure`` does, as people are told it, and about how many seconds each takes.

        Raises LookupError and ScenarioError.
        """
        return {}

    def measure(self, asked: StudyRequest, directory: Path, displays: Displays) -> None:
        """Measure what is no recording and not there yet, once all recordings are, into ``measured/``.

        Raises RuntimeError; what is done by then stays, and can be gone on with.
        """
        return

    @abstractmethod
    def tables(self, directory: Path) -> Sequence[RenderableType]:
        """Return what to show in the terminal."""

    def outputs(self, directory: Path, drawn: Drawn) -> Mapping[str, bytes]:
        """Return what else is made of the recordings, by path; ``drawn`` are the figures for a page."""
        return {}

    def figures(self, directory: Path, sheet: Sheet) -> Drawn:
        """Return the figures for a sheet."""
        return {}

    def analyse(self, directory: Path, sheet: Sheet | None = None) -> None:
        """Write what is made of the recordings; with a sheet, figures for that, too.

        Raises StoredError and ScenarioError as they are read.
        """
        drawn = self.figures(directory, PAGE)
        outputs = {**figure_files(drawn, PAGE), **self.outputs(directory, drawn)}
        besides = figure_files(self.figures(directory, sheet), sheet) if sheet else {}
        for path, content in {**outputs, **besides}.items():
            atomic.write(directory / path, content)
        recordings = [Recording(directory / row.recording) for row in self.rows(directory) if row.recording]
        if recordings:
            atomic.write(directory / CRATE, self._crate(directory, recordings, outputs))

    def _crate(self, directory: Path, recordings: Sequence[Recording], outputs: Iterable[str]) -> bytes:
        """Return what tells other people's programs of the study's files, and of its recordings'."""
        from bench.presentation import crate
        from bench.presentation.crate import Action, Program

        index = [file.name for file in (self.index_file(directory), directory / REQUEST) if file.is_file()]
        index += [str(file.relative_to(directory)) for file in sorted((directory / BESIDE).rglob("*.json"))]
        files, programs, actions = {*index, *outputs}, dict[str, Program](), list[Action]()
        for recording in recordings:
            below = f"{recording.directory.name}/"
            made = [file.name for file in (recording.summary_file, recording.samples_file) if file.is_file()]
            used, recorded = crate.programs(recording), crate.recorded(recording)
            files |= {f"{below}{path}" for path in (*recorded, *made)}
            programs |= {program.id: program for program in used}
            actions += crate.actions(recording, recording.run_record(), used[0], recorded, made, below)
        about = "recordings of runs that answer one question, and what was made of them"
        name = directory.name.removesuffix(UNFINISHED)
        return crate.render(name, f"A study, {self.name}: {about}", files, programs.values(), actions)

    def notes(self, directory: Path) -> Sequence[str]:
        """Return what else to say."""
        return ()

    def next_step(self, directory: Path, reports: str) -> NextStep | None:
        """Return what to run after it; None if nothing follows. Raises StoredError.

        ``reports`` is where recordings are kept now, which may be elsewhere than when it was made.
        """
        asked = request(directory)
        if asked is None:
            return None
        return self.next_of(asked.model_copy(update={"reports": reports}), self.outcome(directory))

    def next_of(self, asked: StudyRequest, outcome: Outcome) -> NextStep | None:
        """Return what to run after it, of what was asked for and what came out."""
        return next_steps.of_study(asked, outcome, self.leads_to)

    def index(self, rows: Sequence[Any]) -> BaseModel:
        """Return the index that holds these rows."""
        return self.model(rows=list(rows))  # type: ignore[no-any-return]

    def whole_index(self, asked: StudyRequest, cases: Sequence[Case], rows: Sequence[Any]) -> BaseModel:
        """Return the index with what else is to be kept in it of what was asked for."""
        return self.index(rows)

    def rows(self, directory: Path) -> Sequence[Any]:
        """Return the index's Row of each case, in their order, as the study has them. Raises StoredError."""
        return read_index(self.index_file(directory), self.model).rows  # type: ignore[no-any-return]

    def valid(self, directory: Path) -> bool:
        """Tell whether every case was run, and none of the runs is invalid."""
        return all(result and result.verdict != "invalid" for result in self.summaries(directory))

    def outcome(self, directory: Path) -> Outcome:
        """Return by what its verb ends: of most studies, whether their runs prove anything."""
        return "held" if self.valid(directory) else "invalid"

    def promised(self, directory: Path) -> Sequence[Promised]:
        """Return the cases that shall hold, of those that were run. Raises StoredError and ScenarioError."""
        return ()

    def compared(self, directory: Path) -> Mapping[str, str]:
        """Return the cases' recordings by what tells them apart in a comparison. Raises StoredError."""
        return {row.recording: row.recording for row in self.rows(directory) if row.recording}

    def summaries(self, directory: Path) -> list[summary.Summary | None]:
        """Return the summary of each case; None for one without a recording. Raises StoredError."""
        return [
            summary.read(Recording(directory / row.recording).summary_file) if row.recording else None
            for row in self.rows(directory)
        ]


def blocks(cells: Sequence[int], number: int, seed: int) -> list[list[int]]:
    """Return every cell once in each of ``number`` blocks, in random orders.

    Made of ``random()`` alone, which alone is promised to be the same in every version of Python.
    """
    drawn = random.Random(seed)
    return [sorted(cells, key=lambda _: drawn.random()) for _ in range(number)]


def chosen(asked: StudyRequest, choice: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return what is asked for of what there is: all of it, where nothing is said.

    Raises LookupError for what there is not.
    """
    there = tuple(known)
    names = tuple(asked.choices.get(choice) or there)
    for name in names:
        if name not in there:
            raise LookupError(f"--{choice}: no {choice} {name!r} ({choice}s: {', '.join(there)})")
    return names


def numbers(asked: StudyRequest, choice: str, allowed: range) -> list[int]:
    """Return the numbers that are asked for. Raises LookupError for what is not allowed."""
    words = asked.choices.get(choice) or ()
    for word in words:
        if not re.fullmatch("[0-9]{1,10}", word) or int(word) not in allowed:
            raise LookupError(
                f"--{choice}: must be an integer from {allowed[0]} to {allowed[-1]}, not {word!r}"
            )
    return [int(word) for word in words]


def number(asked: StudyRequest, choice: str, allowed: range) -> int | None:
    """Return the one that is asked for, if any is. Raises LookupError, for several too."""
    found = numbers(asked, choice, allowed)
    if len(found) > 1:
        raise LookupError(f"--{choice}: {' and '.join(map(str, found))} are several numbers; write one")
    return found[0] if found else None


def traffic_s(scenario: Scenario, repetitions: int | None = None) -> float:
    """Return how long a scenario's traffic flows, all repetitions together or so many, in seconds."""
    return scenario.duration * (scenario.measurement.repetitions if repetitions is None else repetitions)


def left_s(planned: Sequence[float], took: Sequence[float | None], number: int) -> float:
    """Return the seconds that the cases from ``number`` on will take that did not take any yet.

    Each takes its traffic, and beyond that what those before took on average: nothing, before the first.
    """
    beyond = [real - plan for plan, real in zip(planned, took, strict=True) if real is not None]
    each = fmean(beyond) if beyond else 0.0
    return sum(
        max(plan + each, 0.0)
        for plan, real in zip(planned[number:], took[number:], strict=True)
        if real is None
    )


def untold(asked: StudyRequest, scenario: str, enforcement: str) -> list[str]:
    """Return what leaves out what an enforcement cannot be told: what pods are promised to receive.

    It is compared by what their senders were promised.
    """
    if enforcement in receiving():
        return []
    pods = requests.read(asked.case(scenario, asked.overrides)).pods
    return [f"pods.{name}.ingress=null" for name, pod in pods.items() if pod.ingress is not None]
