"""Verbs that run studies, and show what came of them: study, matrix, places, backends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Unpack

from rich.console import Console

from bench.console import asked, documents, statuses
from bench.console.documents import Document
from bench.console.messages import lead, say
from bench.console.progress import Display
from bench.presentation import commands
from bench.presentation.wording import estimate
from bench.recording import atomic
from bench.recording.directory import Recording
from bench.recording.records import StudyRequest
from bench.studies import known, loop
from bench.studies.study import Promised, Study
from testbed.assembly import admit
from testbed.scenario.addressing import Addressing

# What a study alone may be asked for: texts that may be repeated, one, a number, or that it be so.
Choices = Mapping[str, list[str] | str | int]


def run(
    name: str,
    choices: Choices = MappingProxyType({}),
    resume: str = "",
    gate: bool = False,
    kubeconfig: Sequence[str] = (),
    choose: Sequence[str] = (),
    *,
    document: Document,
    dry: bool = False,
    **options: Unpack[asked.Options],
) -> int:
    """Run a study, or go on with one that was interrupted, and show it; with ``dry`` say which cases it has.

    With ``gate`` the exit status is about the cases that shall hold, and about no others.
    """
    wanted = chosen(choices, choose)
    study = known.named(name)
    request = _asked(study, wanted, kubeconfig, **options)
    if dry:
        return _say_planned(study, request, resume)
    directory = _run(study, request, resume, gate)
    document |= document_of(study, directory, options["reports"])
    status = show(study, directory, options["reports"])
    return _gate(study.promised(directory)) if gate else status


def _say_planned(study: Study, wanted: StudyRequest, resume: str) -> int:
    """Say which cases would be run. Raises LookupError for what could not be brought up."""
    if resume:
        say(f"{resume} would be resumed")
    for case in study.cases(wanted):
        scenario = case.scenario
        if scenario:
            admit(Addressing(scenario))
        say(f"{case.name}: {f'{scenario.duration:g} s of traffic' if scenario else 'cannot be run here'}")
    probes = study.probes(wanted)
    for what, seconds in probes.items():
        say(f"{what}: {estimate(seconds)}")
    if probes:
        say(f"beside recordings {estimate(sum(probes.values()))}, where testbeds are namespaces")
    return statuses.HELD


def _asked(
    study: Study,
    choices: Mapping[str, Sequence[str]],
    kubeconfigs: Sequence[str],
    **options: Unpack[asked.Options],
) -> StudyRequest:
    """Return what is asked for. Raises LookupError for a choice that the study does not have."""
    wanted = asked.study(study.name, choices, kubeconfigs, **options)
    there = study.verb.choices if study.verb else study.choices
    for choice in wanted.choices:
        if choice not in there:
            raise LookupError(f"--choose: {study.name} has no {choice!r} ({', '.join(there) or 'nothing'})")
    return wanted


def _run(study: Study, wanted: StudyRequest, resume: str, gate: bool) -> Path:
    """Return the directory of a study that is complete."""
    displays = partial(Display, Console())
    if resume:
        asked.refuse_others(wanted, StudyRequest(study=study.name, reports=wanted.reports))
        return loop.resume(study, resume, Path(wanted.reports), displays)
    if gate and not any(case.promised for case in study.cases(wanted)):
        raise LookupError(
            "--gate: none of these cases shall hold; docs/explanation/enforcements-compared.md says which do"
        )
    return loop.run(study, wanted, displays)


def _gate(promised: Sequence[Promised]) -> int:
    """Say what became of the cases that shall hold; return the exit status: invalid, if there are none."""
    for case in promised:
        say(f"gate: {case.case} shall hold: {case.verdict}")
    return statuses.worst([case.verdict for case in promised] or ["invalid"])


def chosen(given: Choices, words: Sequence[str]) -> dict[str, Sequence[str]]:
    """Return what a study is asked for, by its own options and ``--choose``. Raises LookupError."""
    choices: dict[str, list[str]] = {}
    for name, value in given.items():
        texts = value if isinstance(value, list) else ["yes" if value is True else str(value)]
        choices[name.replace("_", "-")] = list(texts)
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise LookupError(f"--choose: {word!r} is not KEY=VALUE, as in enforcement=pod")
        choices.setdefault(key, []).append(value)
    return {**choices}


def show(study: Study, directory: Path, reports: str) -> int:
    """Show a study's tables, and where its files are; return the exit status of its outcome.

    ``reports`` is as in ``Study.next_step``.
    """
    console = Console()
    for table in study.tables(directory):
        console.print(table)
        console.print()
    for note in study.notes(directory):
        say(note)
    say(f"recordings: {directory}")
    if (directory / "figures").is_dir():
        say(f"figure:     {directory / 'figures'}")
    for page in sorted(directory.glob("*.html")):
        say(f"page:       {page}")
    outcome = study.outcome(directory)
    if step := study.next_step(directory, reports):
        lead(commands.of_step(step, study.flags))
    return statuses.STATUS_OF_VERDICT[outcome]


def document_of(study: Study, directory: Path, reports: str) -> Document:
    """Return what is said of a study: its index, the cases that shall hold, and each of its runs.

    ``reports`` is as in ``Study.next_step``.
    """
    step = study.next_step(directory, reports)
    index = study.index_file(directory)
    files = {"study": directory, "index": index, "figures": directory / "figures"}
    pages = sorted(directory.glob("*.html"))
    return {
        "study": study.name,
        "paths": {**documents.paths(files), "pages": [str(page.absolute()) for page in pages]},
        "index": atomic.read_json(index),
        "promised": [case._asdict() for case in study.promised(directory)],
        "next": documents.following(commands.of_step(step, study.flags)) if step else None,
        "runs": [
            documents.run(Recording(directory / row.recording), summary)
            for row, summary in zip(study.rows(directory), study.summaries(directory), strict=True)
            if row.recording and summary
        ],
    }
