"""Verbs that run experiments, and show what comes and came of them: bench, plan, figures."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Unpack

from rich.console import Console

from bench.cli.verbs import retries
from bench.cli.verbs.addresses import say_room
from bench.cli.verbs.retries import Judged
from bench.cli.verbs.segments import say_segments
from bench.console import asked, documents, progress, statuses
from bench.console.documents import Document
from bench.console.messages import lead, say
from bench.console.progress import Display
from bench.console.statuses import HELD
from bench.measurement import experiment
from bench.recording import archive, directory, requests
from bench.recording.directory import Recording
from bench.recording.records import SMALLER, Request, excluded
from testbed.assembly import admit, demand_links, on_clusters
from testbed.scenario import Scenario
from testbed.scenario.addressing import Addressing

if TYPE_CHECKING:
    from bench.analysis.summary import Summary
    from bench.presentation.figures.sheet import Sheet


def bench(
    scenario: Sequence[str],
    kubeconfig: Sequence[str],
    resume: str,
    document: Document,
    retry: int = retries.MOST,
    enforcement: str = "",
    repetitions: str | None = None,
    dry: bool = False,
    **options: Unpack[asked.Options],
) -> int:
    """Run scenarios one after another, or go on with a run; judge them, and return the worst exit status.

    With ``dry`` only say what would be done, as far as that can be known before.

    With kubeconfigs the clusters exist already, and what runs the pods is Kubernetes. A run that proves
    nothing because of the machine leads to at most ``retry`` others; one that is gone on with, to none. At
    scale auto it is begun at the largest at which a calibration says that this machine can tell.
    """
    wanted, auto = _wanted(scenario, kubeconfig, enforcement, repetitions, options)
    allowance = retries.Allowance(asked.retries(retry))
    if resume:
        reports = options["reports"]
        asked.refuse_others(wanted[0], Request(scenario=asked.PAPER[0], reports=reports), auto)
        return _resumed(resume, Path(reports), document, dry)
    # All are read before the first is started: a mistake in the second is no reason to lose it.
    read = [requests.read(request) for request in wanted]
    if dry:
        return _say_planned(wanted, read, auto)
    return _answer(wanted, auto, allowance, document)


def plan(scenario: Sequence[str], **options: Unpack[asked.Options]) -> int:
    """Say what a run of scenarios would be, as ``bench`` does with ``dry``."""
    wanted, auto = _wanted(scenario, (), "", None, options)
    return _say_planned(wanted, [requests.read(request) for request in wanted], auto)


def _answer(wanted: Sequence[Request], auto: bool, allowance: retries.Allowance, document: Document) -> int:
    """Run all that is asked for, fill in what programs are told, and return the worst exit status."""
    answers = [_answered(_calibrated(request) if auto else request, allowance) for request in wanted]
    document["runs"] = [
        {**documents.run(*made.judged), "scale": made.request.scale}
        for one in answers
        for made in one.attempts
    ]
    return statuses.worst(one.asked.judged.summary.verdict for one in answers)


def _wanted(
    scenarios: Sequence[str],
    kubeconfigs: Sequence[str],
    enforcement: str,
    repetitions: str | None,
    options: asked.Options,
) -> tuple[list[Request], bool]:
    """Return what is asked for of each run, and whether a calibration is to find the scale."""
    options["set_"] = [*options["set_"], *asked.overrides(enforcement, repetitions)]
    options["scale"], auto = asked.scale(options["scale"])
    return [asked.request(name, kubeconfigs, **options) for name in scenarios or asked.PAPER], auto


def _say_planned(wanted: Sequence[Request], scenarios: Sequence[Scenario], auto: bool) -> int:
    """Say what each run would be. Raises LookupError for what could not be brought up."""
    for request, one in zip(wanted, scenarios, strict=True):
        admit(Addressing(one))
        existing = request.kubeconfigs
        demand_links(on_clusters(existing)[0] if existing else request.provider, one)
        times = one.measurement.repetitions
        nodes = f"{len(one.nodes)} nodes ({request.provider})"
        say(
            f"{one.name}: on {'clusters that exist' if request.kubeconfigs else nodes}, "
            f"{len(one.pods)} pods by {request.orchestrator}, "
            f"guarantees by {one.kept_by}; {len(one.transfers)} transfers in "
            f"{one.duration:g} s, {times} time{'s' * (times > 1)}; recorded in {request.reports}/"
            f"{'; at the scale that a calibration finds' if auto else ''}"
        )
        say_room(one)
        say_segments(one)
    return HELD


def _resumed(run: str, reports: Path, document: Document, dry: bool) -> int:
    """Go on with an interrupted run; with ``dry`` only say with which."""
    if dry:
        say(f"{directory.find_unfinished(run, reports).directory} would be resumed")
        return HELD
    judged = resume_bench(run, reports)
    document["runs"] = [documents.run(*judged)]
    return statuses.worst([judged.summary.verdict])


def resume_bench(run: str, reports: Path) -> Judged:
    """Make what an interrupted run lacks, and judge it."""
    found = directory.find_unfinished(run, reports)
    display = Display(Console(), found.scenario().name)
    return _judge(experiment.resume(found, display), display)


def _answered(request: Request, allowance: retries.Allowance) -> retries.Answer:
    """Run what is asked for, as often as may be; its last line is what to run next, knowing all of that."""
    found = retries.answer(request, _run, allowance)
    if found.further:
        from bench.presentation import commands

        last = found.attempts[-1].judged
        tried = [one.request.scale for one in found.attempts]
        step = commands.after_run(last.recording, last.summary, tried)
        found.attempts[-1] = found.attempts[-1]._replace(judged=last._replace(following=step))
        lead(step)
    return found


def _calibrated(request: Request) -> Request:
    """Return what is asked for at the largest scale at which this machine can tell, or at the smallest."""
    scenario = requests.read(request)
    display = Display(Console(), scenario.name)
    found = experiment.foresee(request, scenario, display)
    smallest = SMALLER[-1]
    scale = next((one.scale for one in found if not excluded(found, one.scale)), smallest)
    scale = scale if found else 1.0  # nothing is promised, so nothing is foreseen
    display.stage(f"--scale {scale:g}")
    return request.model_copy(update={"scale": scale})


def _run(request: Request, retry_of: str | None) -> Judged:
    scenario = requests.read(request)
    display = Display(Console(), scenario.name)
    return _judge(experiment.run(request, scenario, display, retry_of=retry_of), display)


def _judge(recording: Recording, display: Display) -> Judged:
    """Analyse a recording, give it its final name, and show what it says."""
    display.stage("analysis")
    # Imported only now: half a second of pandas and matplotlib that would otherwise delay the traffic.
    from bench import pipeline

    try:
        summary = pipeline.analyse(recording)
        finished = recording.finish()
    except OSError:  # a full disk, mostly
        display.stage(
            "all repetitions are recorded; to analyse them once there is room: "
            f"./invokew bench --resume {shlex.quote(str(recording.directory))}"
        )
        raise
    return _shown(finished, summary)


def _shown(recording: Recording, summary: Summary, reports: Path | None = None) -> Judged:
    """Show what a recording says, and what to run next."""
    from bench.presentation import commands, tables, wording

    remark = wording.on_the_network(recording.scenario(), summary.verdict)
    step = commands.after_run(recording, summary, reports=reports)
    tables.show(Console(), summary, recording, remark, step)
    return Judged(recording, summary, step)


def figures(
    run: str,
    all_: bool,
    check: bool,
    reports: str | Path,
    document: Document,
    size: Mapping[str, str] = MappingProxyType({}),
) -> int:
    """Make again what follows from one recording or study, or from all; or check all.

    ``size``: preset, width, font_size and format of figures to draw besides, as far as said.
    """
    from bench.presentation.figures import sheet

    wanted, reports = sheet.asked(**size), Path(reports)
    if wanted and not run:
        raise LookupError(
            "--preset, --width, --font-size, --format: for the figures of one recording or study"
        )
    if all_ == bool(run) or (check and not all_):
        raise LookupError("figures: give either a recording, or --all, or --all --check")
    if run:
        return draw_figures(run, reports, document, wanted)
    from bench.studies.reproduction import verbs

    return verbs.all_figures(reports, document, check)


def draw_figures(run: str, reports: Path, document: Document, sheet: Sheet | None = None) -> int:
    """Make everything that follows from a recording, or from a study's recordings, again, and show it.

    What is packed is unpacked into ``reports`` first. With a sheet, draw the figures for that, too.
    """
    from bench import pipeline
    from bench.studies import known, verb

    if (packed := archive.find(run, reports)) is not None:
        run = str(_unpacked(packed, reports))
    if found := known.find(run, reports):
        study, place = found
        study.analyse(place, sheet)
        document |= verb.document_of(study, place, str(reports))
        _say_drawn(place / "figures", sheet)
        return verb.show(study, place, str(reports))
    recording = directory.find(run, reports)
    summary = pipeline.analyse(recording, sheet)
    _say_drawn(recording.figures_directory, sheet)
    judged = _shown(recording, summary, reports)
    document["runs"] = [documents.run(*judged)]
    return statuses.worst([judged.summary.verdict])


def _unpacked(packed: Path, reports: Path) -> Path:
    """Unpack a recording or a study, whose recordings are analysed anew; return its directory."""
    from bench import pipeline

    unpacked = archive.unpack(packed, reports)
    runs = archive.recordings(unpacked)
    with progress.counted("made again") as counted:
        for number, recording in enumerate(runs, start=1):
            pipeline.analyse(recording)
            counted(number, len(runs))
    return unpacked


def _say_drawn(figures: Path, sheet: Sheet | None) -> None:
    """Say which files were drawn for a sheet that is none of those that are always there."""
    if sheet is None or not sheet.name:
        return
    for kind in sheet.formats:
        for file in sorted(figures.glob(sheet.file("*", kind))):
            say(f"drawn: {file}")


def pack(run: str, to: str, reports: str | Path) -> int:
    """Pack a recording, or a matrix or a study of places, to be kept or given away."""
    with progress.counted("packed") as counted:
        file = archive.pack(archive.to_pack(run, Path(reports)), Path(to), counted)
    say(f"packed: {file}")
    return HELD
