"""Verbs that run experiments, and show what came of them: bench, figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from rich.console import Console

from bench.cli.exits import HELD, INVALID, VIOLATED
from bench.cli.verbs import asked
from bench.recording import requests
from bench.recording.records import Request

if TYPE_CHECKING:
    from bench.cli.progress import Display
    from bench.recording.directory import Recording
    from testbed.scenario import Scenario

PAPER = ("contmec", "kubernetes")  # figs. 13 and 14
STATUS_OF_VERDICT = {"held": HELD, "violated": VIOLATED, "invalid": INVALID}


def bench(
    scenarios: Sequence[str], kubeconfigs: Sequence[str], resume: str, **options: Unpack[asked.Options]
) -> int:
    """Run scenarios one after another, or go on with a run; judge them, and return the worst exit status.

    With kubeconfigs the clusters exist already, and what runs the pods is Kubernetes.
    """
    wanted = [asked.request(name, kubeconfigs, **options) for name in scenarios or PAPER]
    if resume:
        reports = options["reports"]
        asked.refuse_others(wanted[0], Request(scenario=PAPER[0], reports=reports))
        return resume_bench(resume, Path(reports))
    # All are read before the first is started: a mistake in the second is no reason to lose the first.
    statuses = [_run(*pair) for pair in [(request, requests.read(request)) for request in wanted]]
    return next((bad for bad in (VIOLATED, INVALID) if bad in statuses), HELD)


def resume_bench(run: str, reports: Path) -> int:
    """Make what an interrupted run lacks, judge it, and return the exit status."""
    from bench.cli.progress import Display
    from bench.measurement import experiment
    from bench.recording import directory

    found = directory.find_unfinished(run, reports)
    display = Display(Console(), found.scenario().name)
    return _judge(experiment.resume(found, display), display)


def _run(request: Request, scenario: Scenario) -> int:
    from bench.cli.progress import Display
    from bench.measurement import experiment

    display = Display(Console(), scenario.name)
    return _judge(experiment.run(request, scenario, display), display)


def _judge(recording: Recording, display: Display) -> int:
    """Analyse a recording, give it its final name, and show what it says."""
    display.stage("analysis")
    # Imported only now: half a second of pandas and matplotlib that would otherwise delay the traffic.
    from bench import pipeline
    from bench.presentation import tables

    summary = pipeline.analyse(recording)
    tables.show(Console(), summary, recording.finish())
    return STATUS_OF_VERDICT[summary.verdict]


def draw_figures(run: str, reports: Path) -> int:
    """Make everything that follows from a recording, or from a study's recordings, again, and show it.

    What is packed is unpacked into ``reports`` first.
    """
    from bench import pipeline
    from bench.cli.verbs import studies
    from bench.presentation import tables
    from bench.recording import archive, directory
    from bench.studies import known

    if (packed := archive.find(run, reports)) is not None:
        unpacked = archive.unpack(packed, reports)
        for recording in archive.recordings(unpacked):  # if it is a study
            pipeline.analyse(recording)
        run = str(unpacked)
    if found := known.find(run, reports):
        study, place = found
        study.analyse(place)
        return studies.show(study, place)
    recording = directory.find(run, reports)
    summary = pipeline.analyse(recording)
    tables.show(Console(), summary, recording)
    return STATUS_OF_VERDICT[summary.verdict]


def pack(run: str, to: str, reports: Path) -> int:
    """Pack a recording, or a matrix or a study of places, to be kept or given away."""
    from bench.cli.terminal import say
    from bench.recording import archive
    from bench.recording import directory as recordings

    places = [place for place in (Path(run), reports / run) if archive.recordings(place)]
    directory = places[0] if places else recordings.find(run, reports).directory
    for file in archive.pack(directory, Path(to)):
        say(f"packed: {file}")
    return HELD
