"""A night: run the scenarios, or take recordings of them; pass both gates; write exports, then the history.

The line in the history is written last, and what is found is made of the lines and the acknowledgements
alone. So a night that is gone through again, after a kill or later, comes to the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from bench import pipeline
from bench.measurement import environment, experiment
from bench.measurement.display import Displays
from bench.recording import atomic
from bench.recording.directory import Recording
from bench.recording.records import Request
from bench.studies.nightly import acknowledgements, findings, gates, machine, metrics, night, shifts, trend
from bench.studies.nightly.acknowledgements import Acknowledgements
from bench.studies.nightly.history import History
from bench.studies.nightly.night import Attempt, Night, Outcome
from bench.studies.nightly.report import Report
from testbed.scenario import Scenario

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
    history, acknowledged = _ready(places, machine.identity(host))
    outcomes = {scenario.name: _tried(request, scenario, displays) for request, scenario in wanted}
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return _conclude(night.build(outcomes, host, now), outcomes, history, acknowledged, places)


def replay(recordings: Sequence[Recording], places: Places) -> Report:
    """Do all but run: recordings of one scenario are its attempts. Raises LookupError as ``run`` does."""
    for recording in recordings:
        recording.run_record()  # nothing is written if one of them cannot be read
    machines = {machine.identity(night.environment(recording)) for recording in recordings}
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
    return Report(nights, outcomes, gates.judge(nights, found), changed, found, warnings)


def _ready(places: Places, of: str) -> tuple[History, Acknowledgements]:
    """Read what was there before, then make sure that there can be more. Raises LookupError."""
    history = History(places.history, of)
    acknowledged = acknowledgements.read(places.acknowledgements, of, places.must_exist)
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
