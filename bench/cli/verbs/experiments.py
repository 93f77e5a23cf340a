"""Verbs that run experiments, and show what came of them: bench, matrix, places, figures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

import bench.generators  # noqa: F401 - they have a say in what a scenario may ask for
from bench.cli.exits import HELD, INVALID, VIOLATED
from bench.cli.terminal import say
from bench.cli.verbs.scenarios import scenario_file
from testbed.assembly import EXISTING
from testbed.resources import SCENARIOS
from testbed.scenario import Scenario, load, texts

if TYPE_CHECKING:
    from bench.cli.progress import Display
    from bench.recording.directory import Recording

PAPER = ("contmec", "kubernetes")  # figs. 13 and 14
COMPARED = ("contmec", "congested")
STATUS_OF_VERDICT = {"held": HELD, "violated": VIOLATED, "invalid": INVALID}


def run_bench(
    names: Sequence[str],
    overrides: Sequence[str],
    scale: float,
    provider: str,
    orchestrator: str,
    reports: Path,
    kubeconfigs: Sequence[str] = (),
) -> int:
    """Run scenarios one after another, judge them, and return the worst exit status.

    With kubeconfigs the clusters exist already, and what runs the pods is Kubernetes.
    """
    if kubeconfigs:
        provider, orchestrator = f"{EXISTING}:{','.join(kubeconfigs)}", "kubernetes"
    # All are read before the first is started: a mistake in the second is no reason to lose the first.
    scenarios = [load(scenario_file(name), overrides, scale) for name in names or PAPER]
    statuses = [_run_one(scenario, provider, orchestrator, reports) for scenario in scenarios]
    return next((bad for bad in (VIOLATED, INVALID) if bad in statuses), HELD)


def resume_bench(run: str, reports: Path, others: Sequence[object]) -> int:
    """Make what an interrupted run lacks, judge it, and return the exit status.

    It goes on as it was begun, so whatever ``others`` holds is refused.
    """
    from bench.cli.progress import Display
    from bench.measurement import experiment
    from bench.recording import directory

    if any(others):
        raise LookupError("--resume: the run goes on as it was begun; leave out all but --reports")
    found = directory.find_unfinished(run, reports)
    display = Display(Console(), found.scenario().name)
    return _judge(experiment.resume(found, display), display)


def _run_one(scenario: Scenario, provider: str, orchestrator: str, reports: Path) -> int:
    from bench.cli.progress import Display
    from bench.measurement import experiment

    display = Display(Console(), scenario.name)
    recording = experiment.run(
        scenario, provider=provider, orchestrator=orchestrator, reports=reports, display=display
    )
    return _judge(recording, display)


def _judge(recording: Recording, display: Display) -> int:
    """Analyse a recording, give it its final name, and show what it says."""
    display.stage("analysis")
    # Imported only now: half a second of pandas and matplotlib that would otherwise delay the traffic.
    from bench import pipeline
    from bench.presentation import tables

    summary = pipeline.analyse(recording)
    tables.show(Console(), summary, recording.finish())
    return STATUS_OF_VERDICT[summary.verdict]


def run_matrix(
    names: Sequence[str],
    enforcements: Sequence[str],
    overrides: Sequence[str],
    scale: float,
    provider: str,
    orchestrator: str,
    reports: Path,
) -> int:
    """Run scenarios under one enforcement after another, and show them side by side."""
    from bench.cli.progress import Display
    from bench.studies.matrix import index, study

    files = [scenario_file(name) for name in names or COMPARED]
    plan = study.Plan(files, enforcements or index.ENFORCEMENTS, overrides, scale)
    directory = study.run(plan, provider, orchestrator, reports, partial(Display, Console()))
    return show_matrix(directory)


def show_matrix(directory: Path) -> int:
    """Show a matrix's tables, and where its figure and page are."""
    from bench.studies.matrix import index as indexed
    from bench.studies.matrix import table

    console = Console()
    index, summaries = indexed.read(directory)
    for scenario in index.scenarios:
        console.print(table.compare(index, summaries, scenario))
        console.print()
    say(f"recordings: {directory}")
    say(f"figure:     {directory / 'figures'}")
    say(f"page:       {directory / 'matrix.html'}")
    return INVALID if any(each.verdict == "invalid" for each in summaries.values()) else HELD


def run_places(
    names: Sequence[str],
    overrides: Sequence[str],
    scale: float,
    provider: str,
    orchestrator: str,
    reports: Path,
) -> int:
    """Measure at which of the paper's places bandwidth can be guaranteed; see bench.studies.places.study."""
    from bench.cli.progress import Display
    from bench.studies.places import index, study

    known = list(dict.fromkeys(case.place for case in index.CASES))
    for name in names:
        if name not in known:
            raise LookupError(f"--place: no place {name!r} (places: {', '.join(known)})")
    wanted = {index.UNSHAPED, *(names or known)}
    directory = SCENARIOS / "places"
    cases = [(c, c.load(directory, overrides, scale)) for c in index.CASES if c.place in wanted]
    return show_places(study.run(cases, provider, orchestrator, reports, partial(Display, Console())))


def show_places(directory: Path) -> int:
    """Show a study of places; it is invalid if any of its runs is."""
    from bench.studies.places import index, table

    console = Console()
    study = index.read(directory)
    for shown in (table.rates(study), table.answers(study)):
        console.print(shown)
        console.print()
    for row in study.rows:
        if row.reason:
            say(f"not run: {row.place}, {row.classes}: {row.reason}")
    say(f"recordings: {directory}")
    say(f"figure:     {directory / 'figures'}")
    return INVALID if any(row.verdict in (None, "invalid") for row in study.rows) else HELD


def draw_figures(run: str, reports: Path) -> int:
    """Make everything that follows from a recording, a matrix or a study of places again, and show it.

    What is packed is unpacked into ``reports`` first.
    """
    from bench import pipeline
    from bench.presentation import tables
    from bench.recording import archive
    from bench.recording import directory as recordings
    from bench.studies.matrix import index as matrix_index
    from bench.studies.matrix import study as matrix
    from bench.studies.places import index as places_index
    from bench.studies.places import study as places

    if (packed := archive.find(run, reports)) is not None:
        unpacked = archive.unpack(packed, reports)
        for recording in archive.recordings(unpacked):  # if it is a study
            pipeline.analyse(recording)
        run = str(unpacked)
    for directory in (Path(run), reports / run):
        if texts.is_file(directory / matrix_index.INDEX):
            matrix.analyse(directory)
            return show_matrix(directory)
        if texts.is_file(directory / places_index.INDEX):
            places.analyse(directory)
            return show_places(directory)
    found = recordings.find(run, reports)
    summary = pipeline.analyse(found)
    tables.show(Console(), summary, found)
    return STATUS_OF_VERDICT[summary.verdict]


def pack(run: str, to: str, reports: Path) -> int:
    """Pack a recording, or a matrix or a study of places, to be kept or given away."""
    from bench.recording import archive
    from bench.recording import directory as recordings

    places = [place for place in (Path(run), reports / run) if archive.recordings(place)]
    directory = places[0] if places else recordings.find(run, reports).directory
    for file in archive.pack(directory, Path(to)):
        say(f"packed: {file}")
    return HELD
