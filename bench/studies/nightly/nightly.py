"""A night: run the scenarios, or take recordings of them; pass both gates; write exports, then the history.

The line in the history is written last, and what is found is made of the lines and the acknowledgements
alone. So a night that is gone through again, after a kill or later, comes to the same.

``DIR/<machine>.jsonl`` has one line for each night of a machine, the first one first. A line is one ``write``
under a lock, and synced. Whoever was killed meanwhile may have left the beginning of one; that is set aside,
into ``<machine>.jsonl.torn``, before the next is written. A run id is there once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from pydantic import ValidationError

from bench import pipeline
from bench.measurement import environment, experiment
from bench.measurement.display import Displays
from bench.recording import atomic
from bench.recording.atomic import StoredError
from bench.recording.directory import Recording
from bench.recording.records import Request
from bench.studies.nightly import findings, metrics, night, shifts, trend
from bench.studies.nightly.findings import Acknowledgements
from bench.studies.nightly.night import Attempt, Night, Outcome
from bench.studies.nightly.report import Report
from testbed.access import locks
from testbed.scenario import Scenario
from testbed.scenario.faults import explained, render_path

TORN = ".torn"


class History:
    """The nights of one machine, in a file."""

    def __init__(self, directory: Path, machine: str) -> None:
        self.file = directory / f"{machine}.jsonl"

    def nights(self) -> list[Night]:
        """Return all whole lines. Raises StoredError with file and line for one that is none of ours."""
        try:
            content = self.file.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise StoredError(self.file, error.strerror or str(error)) from None
        return self._parsed(content)

    def prepare(self) -> None:
        """Make sure that lines can be written. Raises LookupError: nothing is started then."""
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            descriptor = self._opened()
        except OSError as error:
            raise LookupError(
                f"--history: {self.file} cannot be written: {error.strerror}; give another directory"
            ) from None
        try:
            if not locks.take(descriptor):
                raise LookupError(
                    f"--history: {self.file}: its file system has no locks; give a directory on another"
                )
        finally:
            os.close(descriptor)

    @contextmanager
    def locked(self) -> Iterator[Locked]:
        """Keep others from writing meanwhile. Raises OSError with the file's name, and StoredError."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = self._opened()
        try:
            locks.take(descriptor)
            yield Locked(self, descriptor)
        finally:
            os.close(descriptor)

    def _opened(self) -> int:
        return os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def _parsed(self, content: bytes) -> list[Night]:
        """Read whole lines; what is after the last line's end was left half."""
        lines = content.split(b"\n")[:-1]
        nights = [self._night(number, line) for number, line in enumerate(lines, start=1)]
        seen: set[str] = set()
        for number, one in enumerate(nights, start=1):
            if one.run_id in seen:
                raise StoredError(self.file, f"line {number}: run {one.run_id} is there twice; remove one")
            seen.add(one.run_id)
        return nights

    def _night(self, number: int, line: bytes) -> Night:
        try:
            return Night.model_validate_json(line)
        except ValidationError as error:
            path, text = explained(error)[0]
            words = ": ".join(filter(None, (f"line {number}", render_path(path), text)))
            raise StoredError(self.file, f"{words}; correct or remove that line") from None


class Locked:
    """A history that nobody else writes to."""

    def __init__(self, history: History, descriptor: int) -> None:
        self._file, self._descriptor = history.file, descriptor
        self.nights: Sequence[Night] = history.nights()

    def append(self, tonight: Night) -> None:
        """Write a line. Raises OSError with the file's name, and then the file is as it was."""
        if any(one.run_id == tonight.run_id for one in self.nights):
            raise ValueError(f"{tonight.run_id} is there already")
        line = (tonight.model_dump_json() + "\n").encode()
        try:
            self._set_aside()
            whole = os.fstat(self._descriptor).st_size
            if os.write(self._descriptor, line) != len(line):
                os.ftruncate(self._descriptor, whole)
                raise OSError(28, "no room for a whole line")
            os.fsync(self._descriptor)
            _sync(self._file.parent)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._file)) from None
        self.nights = [*self.nights, tonight]

    def _set_aside(self) -> None:
        """Move what is after the last line's end to a file of its own."""
        content = self._file.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole == len(content):
            return
        with Path(f"{self._file}{TORN}").open("ab") as torn:
            torn.write(content[whole:] + b"\n")
            torn.flush()
            os.fsync(torn.fileno())
        os.ftruncate(self._descriptor, whole)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


ATTEMPTS = 2  # at a statement: once more, if the first says nothing


@dataclass(frozen=True)
class Places:
    """Where a night's files are."""

    history: Path  # directory
    exports: Path  # directory
    acknowledgements: Path
    must_exist: bool = False  # the last of them was asked for by name


def run(wanted: Sequence[tuple[Request, Scenario]], places: Places, displays: Displays) -> Report:
    """Run scenarios, each once more if it says nothing, and return what the night shows.

    Raises LookupError for all that is wrong with histories and acknowledgements before anything is started.
    """
    host = environment.surroundings()
    for request, scenario in wanted:
        experiment.check(request, scenario)
    history, acknowledged = _ready(places, night.identity(host))
    outcomes = {scenario.name: _tried(request, scenario, displays) for request, scenario in wanted}
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return _conclude(night.build(outcomes, host, now), outcomes, history, acknowledged, places)


def replay(recordings: Sequence[Recording], places: Places) -> Report:
    """Do all but run: recordings of one scenario are its attempts. Raises LookupError as ``run`` does."""
    for recording in recordings:
        recording.run_record()  # nothing is written if one of them cannot be read
    machines = {night.identity(night.environment(recording)) for recording in recordings}
    if len(machines) > 1:
        raise LookupError(f"--replay: recordings of several machines: {', '.join(sorted(machines))}")
    history, acknowledged = _ready(places, machines.pop())
    attempts = [Attempt.read(recording, pipeline.analyse(recording)) for recording in recordings]
    outcomes: dict[str, Outcome] = {}
    for attempt in attempts:
        former = outcomes.get(attempt.summary.scenario, Outcome([]))
        if not former.attempts or former.attempts[-1].silent:
            outcomes[attempt.summary.scenario] = Outcome([*former.attempts, attempt])
    line = night.build(outcomes, attempts[0].environment, attempts[0].record.started_at)
    return _conclude(line, outcomes, history, acknowledged, places)


def conclude(
    nights: Sequence[Night], outcomes: Mapping[str, Outcome], acknowledged: Acknowledgements
) -> Report:
    """Return what the last of these nights shows: a pure function."""
    today = date.fromisoformat(nights[-1].started_at[:10])
    changed = shifts.of(nights)
    found = findings.standing(nights, changed, acknowledged)
    warnings = list(acknowledged.warnings(nights, metrics.series(nights), today))
    return Report(nights, outcomes, findings.judge(nights, found), changed, found, warnings)


def _ready(places: Places, of: str) -> tuple[History, Acknowledgements]:
    """Read what was there before, then make sure that there can be more. Raises LookupError."""
    history = History(places.history, of)
    acknowledged = findings.read_acknowledgements(places.acknowledgements, of, places.must_exist)
    acknowledged.check(history.nights())
    history.prepare()
    try:
        places.exports.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LookupError(f"--to: {places.exports} cannot be written: {error.strerror}") from None
    return history, acknowledged


def _tried(request: Request, scenario: Scenario, displays: Displays) -> Outcome:
    attempts: list[Attempt] = []
    for _ in range(ATTEMPTS):
        try:
            attempts.append(_attempt(request, scenario, displays))
        except RuntimeError as error:
            return Outcome(attempts, str(error))
        if not attempts[-1].silent:
            break
    return Outcome(attempts)


def _attempt(request: Request, scenario: Scenario, displays: Displays) -> Attempt:
    display = displays(scenario.name)
    recording = experiment.run(request, scenario, display)
    display.stage("analysis")
    summary = pipeline.analyse(recording)
    return Attempt.read(recording.finish(), summary)


def _conclude(
    line: Night,
    outcomes: Mapping[str, Outcome],
    history: History,
    acknowledged: Acknowledgements,
    places: Places,
) -> Report:
    with history.locked() as kept:
        before = [one.run_id for one in kept.nights]
        there = line.run_id in before
        nights = kept.nights[: before.index(line.run_id)] if there else kept.nights
        report = conclude([*nights, line], outcomes, acknowledged)
        exports = {**report.files(), "trend.html": trend.render(report).encode()}
        for name, content in exports.items():
            atomic.write(places.exports / name, content)
        if not there:
            kept.append(report.tonight)
    return report
