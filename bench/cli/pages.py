"""What ``./invokew`` says of itself: the first page, and of each verb what it does, takes and how it ends."""

from __future__ import annotations

import inspect
import re
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from invoke.parser.argument import Argument
from invoke.tasks import Task

from bench.cli import statuses, words
from bench.cli.groups import Verbs
from testbed import resources

# Of all verbs; ./invokew prints its sections where no Python has been set up yet.
FILE = resources.HOME / "docs" / "reference" / "commands.md"
HEAD = """# Verbs and options

<!-- Made of the code by ./invokew schema; what is changed here by hand is lost. -->

`./invokew --help VERB` says the same of one verb. A short option means one thing with every verb. Paths are
relative to where you stand, and so is `reports`, the default of `--reports`.
"""

ABOUT = "Proves whether a Kubernetes pod gets the bandwidth it was promised."
BEGINNINGS = (
    ("doctor", "what this machine lacks, and what to do about it"),
    ("bench contmec", "20 seconds, a verdict, a figure, a page"),
    ("new mine", "your own scenario; then: bench mine.yaml"),
    ("up contmec", "a testbed that stays; exec A-1 ip route; down"),
)
NARROWEST, USUAL, WIDEST = 60, 80, 100
INDENT = "  "


def render(verbs: Verbs) -> str:
    """Return what ``FILE`` has to hold: what is said of each verb, below the titles of their groups."""
    name = "invokew"
    parts = [HEAD, "## The first page\n", _section(name, front(verbs, name, USUAL))]
    for title, tasks in verbs.groups():
        parts.append(f"## {title.rstrip('.')}\n")
        parts += [_section(task.name, verb(task, task.get_arguments(), verbs, name, USUAL)) for task in tasks]
    return "\n".join(parts)


def _section(heading: str, text: str) -> str:
    return f"### {heading}\n\n```text\n{text}\n```\n"


def front(verbs: Verbs, name: str, width: int | None = None) -> str:
    """Return the first page: what this is, how to begin, and the verbs in their groups.

    Without a width, in columns, it is as wide as the terminal.
    """
    width = width or _width()
    lines = [ABOUT, "", "To begin with:"]
    lines += _table([(f"./invokew {line}", about) for line, about in BEGINNINGS], width)
    for title, tasks in verbs.groups():
        if tasks:
            lines += ["", title, *_table([(task.name, _brief(task)) for task in tasks], width)]
    lines += ["", "./invokew VERB --help says what a verb takes, and how it ends."]
    lines += textwrap.wrap(
        f"--dry does nothing, and says what would be done. --version, --list. {name} completion bash (zsh, "
        "fish) prints what lets your shell complete all this.",
        width,
    )
    return "\n".join(lines)


def verb(
    task: Task[Any], arguments: Sequence[Argument], verbs: Verbs, name: str, width: int | None = None
) -> str:
    """Return all that is said of a verb: what it does and takes, what that is unsaid, and how it ends.

    Without a width, in columns, it is as wide as the terminal.
    """
    width = width or _width()
    command = " [COMMAND ...]" if task.name in verbs.commanding else ""
    places = "".join(_places(arguments, verbs.alone(task.name)))
    options = " [--options]" if arguments else ""
    lines = [f"Usage: {name} {task.name}{options}{places}{command}", "", *textwrap.wrap(_about(task), width)]
    if arguments:
        lines += ["", "Options:", *_table(list(_options(task, arguments)), width)]
    lines += ["", "Exit statuses:", *_table(list(statuses.of(task.name).items()), width)]
    return "\n".join(lines)


def _places(arguments: Sequence[Argument], alone: str | None) -> Iterator[str]:
    for argument in arguments:
        if argument.name == alone:
            yield f" [{str(alone).upper()}{'...' if argument.kind is list else ''}]"
        elif words.is_place(argument):
            yield f" {str(argument.name).upper()}"


def _options(task: Task[Any], arguments: Sequence[Argument]) -> Iterator[tuple[str, str]]:
    defaults = {name: one.default for name, one in inspect.signature(task.body).parameters.items()}
    for argument in sorted(arguments, key=lambda one: (not words.is_place(one), str(one.name))):
        about, default = argument.help or "", defaults.get(argument.attr_name or str(argument.name))
        if argument.takes_value and not words.is_place(argument) and "(default" not in about:
            about += f" (default: {_default(default)})"
        yield _typed(argument), about


def _default(value: object) -> str:
    if value in (None, "", inspect.Parameter.empty):
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def would(task: Task[Any]) -> str:
    """Return what a verb would do, in its own words."""
    return f"{task.name} would: {_about(task)}"


def _typed(argument: Argument) -> str:
    if words.is_place(argument):
        return str(argument.name).upper()
    short = next((f"-{name}, " for name in argument.names if len(name) == 1), "    ")
    value = "" if not argument.takes_value else f"={VALUES.get(argument.kind, 'WORD')}"
    return f"{short}--{str(argument.name).strip('_').replace('_', '-')}{value}"


VALUES = {int: "NUMBER", float: "NUMBER"}


def _about(task: Task[Any]) -> str:
    return (task.__doc__ or "").strip().partition("\n")[0]


def _brief(task: Task[Any]) -> str:
    """Return how a docstring begins: what a list has room for."""
    return re.split(r"(?<=\?)\s|[.:;](?:\s|$)", _about(task))[0]


def _table(rows: list[tuple[str, str]], width: int) -> list[str]:
    """Return rows of two columns, the second wrapped."""
    first = max(len(row[0]) for row in rows) + len(INDENT)
    second = max(width - first - len(INDENT), 30)
    lines = []
    for left, right in rows:
        for index, part in enumerate(textwrap.wrap(right, second) or [""]):
            lines.append(f"{INDENT}{'' if index else left:<{first}}{part}".rstrip())
    return lines


def _width() -> int:
    return min(max(shutil.get_terminal_size().columns, NARROWEST), WIDEST)
