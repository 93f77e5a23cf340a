"""What ``./invokew`` says of itself: the first page, and of each verb what it does, takes and how it ends."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Callable, Iterator

from bench.cli.table import GROUPS
from bench.console import statuses
from bench.console.verb import SET, Option, Verb
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


def render() -> str:
    """Return what ``FILE`` has to hold: what is said of each verb, below the titles of their groups."""
    name = "invokew"
    parts = [HEAD, "## The first page\n", _section(name, front(name, USUAL))]
    for title, verbs in GROUPS.items():
        parts.append(f"## {title.rstrip('.')}\n")
        parts += [_section(one.name, verb(one, name, USUAL)) for one in verbs]
    return "\n".join(parts)


def _section(heading: str, text: str) -> str:
    return f"### {heading}\n\n```text\n{text}\n```\n"


def front(name: str, width: int | None = None) -> str:
    """Return the first page: what this is, how to begin, and the verbs in their groups.

    Without a width, in columns, it is as wide as the terminal.
    """
    width = width or _width()
    lines = [ABOUT, "", "To begin with:"]
    lines += _table([(f"./invokew {line}", about) for line, about in BEGINNINGS], width)
    for title, verbs in GROUPS.items():
        if verbs:
            lines += ["", title, *_table([(one.name, _brief(one)) for one in verbs], width)]
    last = (
        "./invokew VERB --help says what a verb takes, and how it ends; --dry does nothing, and says what "
        f"would be done. --version, --list. {name} completion bash (zsh, fish): a shell completes this."
    )
    lines += ["", *textwrap.wrap(last, width)]
    return "\n".join(lines)


def verb(
    of: Verb, name: str, width: int | None = None, settings: Callable[[], list[tuple[str, str]]] = list
) -> str:
    """Return all that is said of a verb: what it does and takes, what that is unsaid, and how it ends.

    Without a width, in columns, it is as wide as the terminal. ``settings`` are those of parts from outside,
    which are said of a verb that takes some.
    """
    width = width or _width()
    command = " [COMMAND ...]" if of.command else ""
    places = "".join(_places(of))
    options = " [--options]" if of.options else ""
    lines = [f"Usage: {name} {of.name}{options}{places}{command}", "", *textwrap.wrap(of.about, width)]
    if of.options:
        lines += ["", "Options:", *_table(list(_options(of)), width)]
    if SET in of.options and (rows := settings()):
        lines += ["", "Settings of parts from outside, for --set:", *_table(rows, width)]
    lines += ["", "Exit statuses:", *_table(list(statuses.said(of.ends).items()), width)]
    return "\n".join(lines)


def _places(of: Verb) -> Iterator[str]:
    for option in of.options:
        if option.name == of.alone:
            yield f" [{option.name.upper()}{'...' if option.kind is list else ''}]"
        elif option.place:
            yield f" {option.name.upper()}"


def _options(of: Verb) -> Iterator[tuple[str, str]]:
    for option in sorted(of.options, key=lambda one: (not one.place, one.name)):
        about = option.help
        if option.takes_value and not option.place and "(default" not in about:
            about += f" (default: {_default(option.default)})"
        yield _typed(option), about


def _default(value: object) -> str:
    if value in (None, "", ()):
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def would(of: Verb) -> str:
    """Return what a verb would do, in its own words."""
    return f"{of.name} would: {of.about}"


def _typed(option: Option) -> str:
    if option.place:
        return option.name.upper()
    short = f"-{option.short}, " if option.short else "    "
    value = f"={VALUES.get(option.kind, 'WORD')}" if option.takes_value else ""
    return f"{short}{option.flag}{value}"


VALUES = {int: "NUMBER", float: "NUMBER"}


def _brief(of: Verb) -> str:
    """Return how it begins: what a list has room for."""
    return re.split(r"(?<=\?)\s|[.:;](?:\s|$)", of.about)[0]


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
