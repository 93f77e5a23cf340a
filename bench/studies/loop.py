"""How every study is run: its index first, then one case after another, each kept as soon as it is there.

So a study that was interrupted, or that ended with an error, has an index, and can be gone on with.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bench import pipeline
from bench.analysis import summary
from bench.measurement import experiment
from bench.measurement.display import Display, Displays
from bench.presentation.wording import estimate
from bench.recording import atomic
from bench.recording.directory import UNFINISHED, Recording, begin_directory, finish_directory
from bench.recording.records import Request, StudyRequest
from bench.studies.study import REQUEST, Case, Row, Study, Visit, left_s, traffic_s
from testbed.access import locks
from testbed.scenario import Scenario, ScenarioError
from testbed.scenario.texts import is_file


@dataclass(frozen=True)
class _Plan:
    """What is to be done."""

    study: Study
    asked: StudyRequest
    cases: Sequence[Case]
    visits: Sequence[Visit]

    def runs(self) -> list[tuple[Visit, Scenario, float]]:
        """Return the visits to cases that can be run, with the seconds of traffic that each of them takes."""
        found, made = [], [0] * len(self.cases)
        for visit in self.visits:
            scenario = self.cases[visit.case].scenario
            if scenario is not None:
                until = scenario.measurement.repetitions if visit.until is None else visit.until
                found.append((visit, scenario, traffic_s(scenario, until - made[visit.case])))
                made[visit.case] = until
        return found

    def write_index(self, directory: Path, rows: Sequence[Row]) -> None:
        """Keep what is known of the cases by now."""
        index = self.study.whole_index(self.asked, self.cases, rows)
        atomic.write_model(self.study.index_file(directory), index)


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
    rows = [case.row for case in cases]
    plan = _Plan(study, asked, cases, study.visits(asked, cases))
    directory = begin_directory(Path(asked.reports), study.name)
    plan.write_index(directory, rows)
    atomic.write_model(directory / REQUEST, asked)
    return _go_on(plan, rows, directory, displays)


def resume(study: Study, name: str, reports: Path, displays: Displays) -> Path:
    """Make the cases that an interrupted study lacks, as it was begun; see ``run``.

    Raises LookupError too for a study that is complete, that is another, or that somebody is working on.
    """
    directory = _find(study, name, reports)
    if not directory.name.endswith(UNFINISHED):
        raise LookupError(f"--resume: {directory} is complete")
    with atomic.remedy(f"restore it, or begin anew: ./invokew {study.command}"):
        asked = atomic.read(directory / REQUEST, StudyRequest)
    if asked.study != study.name:
        raise LookupError(f"--resume: {directory} is a study {asked.study!r}, and not {study.name!r}")
    cases, rows = study.cases(asked), study.rows(directory)
    if len(cases) != len(rows):
        raise LookupError(f"--resume: {directory} has {len(rows)} cases; today there are {len(cases)}")
    return _go_on(_Plan(study, asked, cases, study.visits(asked, cases)), rows, directory, displays)


def _find(study: Study, name: str, reports: Path) -> Path:
    for each in (name, name + UNFINISHED):
        for directory in (Path(each), reports / each):
            if is_file(directory / REQUEST):
                return directory
            if is_file(study.index_file(directory)):
                raise LookupError(f"--resume: {directory} was begun by a version that cannot resume it")
    known = sorted(file.parent.name for file in reports.glob(f"*{UNFINISHED}/{REQUEST}"))
    raise LookupError(f"--resume: no study {name!r} (unfinished: {', '.join(known[-5:]) or 'none'})")


def _go_on(plan: _Plan, rows: Sequence[Row], directory: Path, displays: Displays) -> Path:
    """Make what the study lacks, and complete it; say how to go on if that fails."""
    study = plan.study
    runs = [row for case, row in zip(plan.cases, rows, strict=True) if case.scenario is not None]
    with locks.working_on(directory, directory / REQUEST) as locked:
        if not locked:
            displays(study.name).stage(f"{directory}: {locks.WITHOUT}")
        try:
            _run_missing(plan, rows, directory, displays)
            study.measure(plan.asked, directory, displays)
            study.analyse(directory)
        except BaseException:
            done = sum(bool(row.recording or row.reason) for row in runs)
            displays(study.name).stage(
                f"{done} of {len(runs)} cases are done; to go on: "
                f"./invokew {study.command} --resume {shlex.quote(str(directory))}"
            )
            raise
    return finish_directory(directory)


def _run_missing(plan: _Plan, rows: Sequence[Row], directory: Path, displays: Displays) -> None:
    """Make the visits to cases that have neither a recording nor a reason for none, and keep the index."""
    visits = plan.runs()
    planned = [seconds for _, _, seconds in visits]
    took = [_seconds(directory, rows[visit.case]) for visit, _, _ in visits]
    for number, (visit, scenario, _) in enumerate(visits):
        case, row = plan.cases[visit.case], rows[visit.case]
        if row.recording or row.reason:
            continue
        left = _left(case.request, directory, {each.recording for each in rows if each.recording})
        if _visited(visit, scenario, left):
            continue
        display = displays(case.name)
        remain = estimate(left_s(planned, took, number))
        display.stage(
            f"{'case' if visit.until is None else 'visit'} {number + 1} of {len(visits)}, {remain} left"
        )
        begun = time.monotonic()
        try:
            row.recording = _make(case.request, scenario, directory, display, left, visit.until)
        except (RuntimeError, ScenarioError) as error:  # the latter where machines are not what it takes
            if not plan.study.keeps_failures:
                raise
            row.reason = str(error)
        took[number] = _seconds(directory, row) if visit.until is None else time.monotonic() - begun
        plan.write_index(directory, rows)


def _visited(visit: Visit, scenario: Scenario, left: Recording | None) -> bool:
    """Tell whether what is left of a case has all of a visit. The last one completes the recording."""
    if left is None or visit.until is None or visit.until >= scenario.measurement.repetitions:
        return False
    return len(left.finished()) >= visit.until


def _make(
    request: Request,
    scenario: Scenario,
    directory: Path,
    display: Display,
    left: Recording | None,
    until: int | None,
) -> str | None:
    """Visit a case, going on with what is ``left`` of it; return its recording's name once it is complete."""
    recording = left
    if recording is None:
        recording = experiment.run(request, scenario, display, study=directory, until=until)
    elif not recording.run_file.exists():
        recording = experiment.resume(recording, display, advice=False, until=until)
    if until is not None and not recording.run_file.exists():
        return None
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


def _seconds(directory: Path, row: Row) -> float | None:
    """Return how long a case took; None if it is not known."""
    if not row.recording:
        return None
    seconds = summary.read(Recording(directory / row.recording).summary_file).seconds
    return seconds.up + seconds.calibration + seconds.traffic + seconds.down + seconds.analysis
