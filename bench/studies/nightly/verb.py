"""The verb that is run every night: nightly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Unpack

from rich.console import Console

from bench.analysis import next_steps
from bench.console import asked
from bench.console.messages import lead, say
from bench.console.progress import Display
from bench.console.statuses import CHANGED, FAILED, HELD, INVALID, VIOLATED
from bench.measurement import environment
from bench.presentation import commands
from bench.recording import archive, directory, requests
from bench.recording.directory import Recording
from bench.recording.records import Request
from bench.studies.nightly import night, nightly
from bench.studies.nightly.night import Verdict
from bench.studies.nightly.report import Report, line
from testbed.assembly import admit
from testbed.scenario import Scenario
from testbed.scenario.addressing import Addressing

STATUS_OF_GATE = {
    "passed": HELD,
    "broken": VIOLATED,
    "not up": FAILED,
    "no statement": INVALID,
    "worse": CHANGED,
    "advice": HELD,
    "acknowledged": HELD,
}
WORST_FIRST: Sequence[Verdict] = ("failed", "violated", "invalid", "held")
ACKNOWLEDGEMENTS = "nightly.yaml"


def places(history: str, to: str, acknowledged: str) -> nightly.Places:
    """Return where a night's files are; the acknowledgements have to be there if they are asked for."""
    file = Path(acknowledged or ACKNOWLEDGEMENTS)
    return nightly.Places(Path(history), Path(to), file, must_exist=bool(acknowledged))


def judge(
    scenario: Sequence[str],
    replay: Sequence[str],
    repetitions: int,
    history: str,
    to: str,
    acknowledged: str,
    machine: bool,
    dry: bool = False,
    **options: Unpack[asked.Options],
) -> int:
    """Run scenarios, or take recordings for them, and judge them; or print which machine this is.

    With ``dry`` only check what would be run.
    """
    if dry:
        for _, one in [] if machine or replay else _asked(scenario, repetitions, **options):
            admit(Addressing(one))
        return HELD
    if machine:
        say(night.identity(environment.surroundings()))
        return HELD
    where = places(history, to, acknowledged)
    if replay:
        return again(replay, repetitions, where, Path(options["reports"]))
    return run(scenario, repetitions, where, **options)


def run(
    scenarios: Sequence[str], repetitions: int, places: nightly.Places, **options: Unpack[asked.Options]
) -> int:
    """Run scenarios, judge them beside the nights before, and return the exit status."""
    read = _asked(scenarios, repetitions, **options)
    return _show(nightly.run(read, places, partial(Display, Console())), places, options["reports"])


def _asked(
    scenarios: Sequence[str], repetitions: int, **options: Unpack[asked.Options]
) -> list[tuple[Request, Scenario]]:
    _check_repetitions(repetitions)
    options["set_"] = [*options["set_"], f"measurement.repetitions={repetitions}"]
    wanted = [asked.request(name, [], **options) for name in scenarios or asked.PAPER]
    read = [(request, requests.read(request)) for request in wanted]
    names = [scenario.name for _, scenario in read]
    if len(set(names)) < len(names):
        raise LookupError(f"--scenario: names must be unique in a night ({', '.join(names)})")
    return read


def again(runs: Sequence[str], repetitions: int, places: nightly.Places, reports: Path) -> int:
    """Do the same with recordings in place of runs."""
    _check_repetitions(repetitions)
    found = [_found(run, reports) for run in runs]
    report = nightly.replay(found, places)
    kept = {one.run_record().run_id: str(one.directory) for one in found}
    return _show(report, places, str(reports), kept)


def _found(run: str, reports: Path) -> Recording:
    packed = archive.find(run, reports)
    return directory.find(run, reports) if packed is None else Recording(archive.unpack(packed, reports))


def _check_repetitions(repetitions: int) -> None:
    if repetitions < 1:
        raise LookupError(f"--repetitions: {repetitions} is too few; at least 1, as in --repetitions 5")


def _show(
    report: Report, places: nightly.Places, reports: str, kept: Mapping[str, str] = MappingProxyType({})
) -> int:
    """Say how a night ended, and what to run next; ``kept`` has the directories of runs elsewhere."""
    for name, one in report.tonight.scenarios.items():
        say(f"{name}: {one.verdict}")
    for text in (*report.reasons(), *map(line, report.findings), *report.notes()):
        say(text)
    say(report.judgement.sentence)
    say(f"history: {places.history / report.tonight.machine}.jsonl")
    say(f"exports: {places.exports}")
    worst = min(report.tonight.scenarios.values(), key=lambda one: WORST_FIRST.index(one.verdict))
    run = worst.recording and kept.get(worst.recording, worst.recording)
    step = commands.of_step(next_steps.of_recording(run, reports))
    lead(step)
    return STATUS_OF_GATE[report.judgement.gate]
