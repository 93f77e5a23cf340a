"""How every study is run: its index first, then one case after another, each kept as soon as it is there.

So a study that was interrupted, or that ended with an error, has an index, and can be gone on with.
"""

from __future__ import annotations

import fcntl
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from bench import pipeline
from bench.analysis import summary
from bench.measurement import experiment
from bench.measurement.display import Display, Displays
from bench.recording import atomic
from bench.recording.directory import UNFINISHED, Recording, begin_directory, finish_directory
from bench.recording.records import Request, StudyRequest
from bench.studies import remaining
from bench.studies.study import REQUEST, Case, Row, Study
from testbed.scenario import Scenario, ScenarioError
from testbed.scenario.texts import is_file


def run(study: Study, asked: StudyRequest, displays: Displays) -> Path:
    """Run every case and return the study's directory, analysed and complete.

    Raises LookupError for what cannot be, and RuntimeError when a testbed cannot be brought up, unless the
    study keeps failures; what is done by then stays, and can be gone on with.
    """
    cases = study.cases(asked)
    for case in cases:
        if case.scenario is not None:
            experiment.check(case.request, case.scenario)
            break
    directory = begin_directory(Path(asked.reports), study.name)
    atomic.write_model(study.index_file(directory), study.index([case.row for case in cases]))
    atomic.write_model(directory / REQUEST, asked)
    return _go_on(study, cases, [case.row for case in cases], directory, displays)


def resume(study: Study, name: str, reports: Path, displays: Displays) -> Path:
    """Make the cases that an interrupted study lacks, as it was begun; see ``run``.

    Raises LookupError too for a study that is complete, that is another, or that somebody is working on.
    """
    directory = _find(study, name, reports)
    if not directory.name.endswith(UNFINISHED):
        raise LookupError(f"--resume: {directory} is complete")
    asked = atomic.read(directory / REQUEST, StudyRequest)
    if asked.study != study.name:
        raise LookupError(f"--resume: {directory} is a study {asked.study!r}, and not {study.name!r}")
    cases, rows = study.cases(asked), study.rows(directory)
    if len(cases) != len(rows):
        raise LookupError(f"--resume: {directory} has {len(rows)} cases; today there are {len(cases)}")
    return _go_on(study, cases, rows, directory, displays)


def _find(study: Study, name: str, reports: Path) -> Path:
    for each in (name, name + UNFINISHED):
        for directory in (Path(each), reports / each):
            if is_file(directory / REQUEST):
                return directory
            if is_file(study.index_file(directory)):
                raise LookupError(f"--resume: {directory} is from before it was recorded what was asked for")
    known = sorted(file.parent.name for file in reports.glob(f"*{UNFINISHED}/{REQUEST}"))
    raise LookupError(f"--resume: no study {name!r} (unfinished: {', '.join(known[-5:]) or 'none'})")


def _go_on(
    study: Study, cases: Sequence[Case], rows: Sequence[Row], directory: Path, displays: Displays
) -> Path:
    """Make what the study lacks, and complete it; say how to go on if that fails."""
    runs = [
        (case, case.scenario, row) for case, row in zip(cases, rows, strict=True) if case.scenario is not None
    ]
    with _locked(directory):
        try:
            _run_missing(study, runs, rows, directory, displays)
            study.analyse(directory)
        except BaseException:
            done = sum(bool(row.recording or row.reason) for _, _, row in runs)
            displays(study.name).stage(
                f"{done} of {len(runs)} cases are done; to go on: "
                f"./invokew {study.command} --resume {shlex.quote(str(directory))}"
            )
            raise
    return finish_directory(directory)


def _run_missing(
    study: Study,
    runs: Sequence[tuple[Case, Scenario, Row]],
    rows: Sequence[Row],
    directory: Path,
    displays: Displays,
) -> None:
    """Run the cases that have neither a recording nor a reason for none, and write the index after each."""
    planned = [remaining.traffic_s(scenario) for _, scenario, _ in runs]
    took = [_seconds(directory, row) for _, _, row in runs]
    for number, (case, scenario, row) in enumerate(runs):
        if row.recording or row.reason:
            continue
        display = displays(case.name)
        left = remaining.words(remaining.left_s(planned, took, number))
        display.stage(f"case {number + 1} of {len(runs)}, {left} left")
        try:
            row.recording = _make(case.request, scenario, directory, display, _taken(rows))
        except RuntimeError as error:
            if not study.keeps_failures:
                raise
            row.reason = str(error)
        took[number] = _seconds(directory, row)
        atomic.write_model(study.index_file(directory), study.index(rows))


def _make(request: Request, scenario: Scenario, directory: Path, display: Display, taken: set[str]) -> str:
    """Run a case, or go on with what an interruption has left of it; return its recording's name."""
    recording = _left(request, directory, taken)
    if recording is None:
        recording = experiment.run(request, scenario, display, study=directory)
    elif not recording.run_file.exists():
        recording = experiment.resume(recording, display, advice=False)
    pipeline.analyse(recording)
    return finish_directory(recording.directory).name


def _left(request: Request, directory: Path, taken: set[str]) -> Recording | None:
    """Return the recording of what is asked for that is no other case's and can be gone on with."""
    for each in sorted(directory.iterdir()):
        recording = Recording(each)
        if recording.run_id in taken:
            continue
        with suppress(atomic.StoredError, ScenarioError):
            if recording.request() == request and _readable(recording):
                return recording
    return None


def _readable(recording: Recording) -> bool:
    """Raise StoredError or ScenarioError for a recording that cannot be gone on with."""
    recording.scenario()
    recording.beginning()
    recording.finished()
    return True


def _taken(rows: Sequence[Row]) -> set[str]:
    return {row.recording for row in rows if row.recording}


def _seconds(directory: Path, row: Row) -> float | None:
    """Return how long a case took; None if it is not known."""
    if not row.recording:
        return None
    seconds = summary.read(Recording(directory / row.recording).summary_file).seconds
    return seconds.up + seconds.calibration + seconds.traffic + seconds.down + seconds.analysis


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Keep others from working on a study. Raises LookupError if somebody is."""
    with (directory / REQUEST).open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LookupError(f"--resume: {directory} is being worked on") from None
        yield
