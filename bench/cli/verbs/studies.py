"""Verbs that run studies, and show what came of them: study, matrix, places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from rich.console import Console

from bench.cli.exits import HELD, INVALID
from bench.cli.terminal import say
from bench.cli.verbs import asked
from bench.recording.records import StudyRequest

if TYPE_CHECKING:
    from bench.studies.study import Study


def run(
    name: str, choices: Mapping[str, Sequence[str]], resume: str, **options: Unpack[asked.Options]
) -> int:
    """Run a study, or go on with one that was interrupted, and show it."""
    from bench.cli.progress import Display
    from bench.studies import known, loop

    study = known.named(name)
    wanted, reports = asked.study(name, choices, **options), options["reports"]
    for choice in wanted.choices:
        if choice not in study.choices:
            raise LookupError(f"--choose: {name} has no {choice!r} ({', '.join(study.choices) or 'nothing'})")
    displays = partial(Display, Console())
    if resume:
        asked.refuse_others(wanted, StudyRequest(study=name, reports=reports))
        return show(study, loop.resume(study, resume, Path(reports), displays))
    return show(study, loop.run(study, wanted, displays))


def chosen(words: Sequence[str]) -> dict[str, list[str]]:
    """Return what a study is asked for by ``--choose KEY=VALUE``. Raises LookupError."""
    choices: dict[str, list[str]] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise LookupError(f"--choose: {word!r} is not KEY=VALUE, as in enforcement=pod")
        choices.setdefault(key, []).append(value)
    return choices


def show(study: Study, directory: Path) -> int:
    """Show a study's tables, and where its files are; it is invalid if any of its runs is."""
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
    return HELD if study.valid(directory) else INVALID
