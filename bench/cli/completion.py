"""What a shell completes: verbs, options, and their values, as the table of verbs has them.

A shell waits for this at each press of a key, so it is started by its path, and neither it nor the table
imports more than Python's standard library.
"""

from __future__ import annotations

import os
import shlex
import sys

if __name__ == "__main__":  # by its path
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from bench.cli import table
from bench.console import values

TYPE_CHECKING = False  # typing takes a while to import
if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.console.verb import Verb

BEFORE = ("--dry", "--help", "--list", "--version")  # options before a verb
AFTER = ("--dry", "--help")  # of every verb


def completions(words: list[str]) -> list[str]:
    """Return what the last of a line's words, after the program's name, may become."""
    joined = _joined(words)
    found = _completions(joined)
    if not words or joined[-1] == words[-1]:
        return found
    option = f"{joined[-1].partition('=')[0]}="  # which to bash is a word before
    return [one.removeprefix(option) for one in found]


def _completions(words: list[str]) -> list[str]:
    *before, word = words or [""]
    place = next((at for at, one in enumerate(before) if one in table.VERBS), None)
    if place is None:
        return _beginning(BEFORE if word.startswith("-") else list(table.VERBS), word)
    verb, typed = table.VERBS[before[place]], before[place + 1 :]
    known = verb.typed()
    if typed and typed[-1] in known and known[typed[-1]].takes_value:
        return _beginning(known[typed[-1]].values(), word)
    if word.startswith("-"):
        option, equals, value = word.partition("=")
        if not equals:
            return _beginning([*(one.flag for one in verb.options), *AFTER], word)
        found = known[option].values() if option in known else []
        return [f"{option}={one}" for one in _beginning(found, value)]
    number = sum(not one.startswith("-") for one in _without_values(typed, verb))
    places = verb.places()
    if number < len(places):
        return _beginning(places[number].values(), word)
    return _beginning(known[f"--{verb.alone}"].values(), word) if verb.alone else []


def show(shell: str) -> int:
    """Print the script for a shell. Raises LookupError for one that there is none for."""
    from testbed import resources

    names = dict.fromkeys([os.path.basename(resources.PROGRAM), resources.PROGRAM])
    if shell not in values.shells():
        raise LookupError(f"completion: no script for {shell!r}; there are: {', '.join(values.shells())}")
    with open(os.path.join(values.SCRIPTS, f"{shell}.txt"), encoding="utf-8") as file:
        print(file.read().replace("NAMES", " ".join(names)), end="")  # noqa: T201 (a shell reads it)
    return 0


def settings() -> list[tuple[str, str]]:
    """Return what a scenario can set of parts from outside: paths, and what they mean. Raises LookupError."""
    from testbed import registry

    if not os.environ.get(registry.VARIABLE):
        return []
    registry.load()
    from testbed.scenario import settings

    return [(path, f"{about} (default: {default})") for path, default, about in settings.fields()]


def brought(kind: str) -> list[str]:
    """Return the names of a kind's parts that are from outside, or the paths of all ``settings``.

    Raises LookupError.
    """
    if kind == "settings":
        return [path for path, _ in settings()]
    from bench.observations import observation  # noqa: F401
    from bench.presentation.figures import registry as _figures  # noqa: F401
    from bench.studies import known as _studies  # noqa: F401
    from testbed import assembly, registry  # noqa: F401

    shipped = set(registry.KINDS[kind])
    registry.load()
    return [name for name in registry.KINDS[kind] if name not in shipped]


def main(arguments: Sequence[str]) -> None:
    """Answer a shell: ``--complete -- PROGRAM WORD ...``; or itself: ``--brought KIND``."""
    if arguments[0] == "--brought":
        print("\n".join(brought(arguments[1])))  # noqa: T201
        return
    words = list(arguments[2:])
    if len(words) == 1:  # a whole line, as invoke's own scripts hand it over
        words = _split(words[0])
    print("\n".join(completions(words[1:])))  # noqa: T201 (a shell reads it)


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:  # a quotation that has not ended
        return line.split()


def _joined(words: list[str]) -> list[str]:
    """Return words with ``--option=value`` in one, where bash makes three of it."""
    found: list[str] = []
    for word in words:
        if word == "=" and found and found[-1].startswith("--"):
            found[-1] += "="
        elif found and found[-1].startswith("--") and found[-1].endswith("="):
            found[-1] += word
        else:
            found.append(word)
    return found


def _without_values(words: list[str], verb: Verb) -> list[str]:
    valued = verb.valued()
    return [word for before, word in zip(["", *words], words) if before not in valued]  # noqa: B905


def _beginning(known: Sequence[str], word: str) -> list[str]:
    return [one for one in known if one.startswith(word)]


if __name__ == "__main__":
    main(sys.argv[1:])
