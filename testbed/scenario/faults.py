"""What is wrong in a file that people wrote: the path to each fault, and what would be right."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice
from typing import Any, NamedTuple

from pydantic import ValidationError

from testbed.registry import nearest
from testbed.scenario.texts import shortened, unshown

Path = tuple[str | int, ...]

LONGEST_NAME = 60  # that is shown whole
MOST_NAMED = 20  # of the names there are
MOST_SHOWN = 50  # faults


class Fault(NamedTuple):
    """One thing that is wrong."""

    path: Path
    message: str


class ScenarioError(LookupError):
    """A scenario that cannot be run; the message names the file, the path to each fault and what is right.

    A LookupError like all bad input, so that the command line need not know scenarios to end with its status.
    """

    def __init__(self, file: str, problems: Iterable[Fault], count: int = 0) -> None:
        """``count`` says how many there are, if only the first of them are given."""
        found = list(problems)
        more = max(count, len(found)) - MOST_SHOWN
        lines = [
            ": ".join(filter(None, (file, render_path(path), text))) for path, text in found[:MOST_SHOWN]
        ]
        if more > 0:
            lines.append(f"{file}: and {more} more")
        super().__init__("\n".join(lines))


def render_path(path: Path) -> str:
    """Return a path as people write it: ``flows[2].to``; a name that cannot be shown is quoted."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif len(part) > LONGEST_NAME or any(unshown(part)):
            text += f"[{shortened(part)!r}]"
        else:
            text += f".{part}" if text else part
    return text


def explained(error: ValidationError, most: int | None = None) -> list[Fault]:
    """Return what a model does not take, or the first of it, with the path to each, as people say it."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [_fault(one) for one in found[:most]]


def listed(names: Collection[str]) -> str:
    """Return names one after the other, as many as one reads."""
    more = f", and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return (", ".join(islice(names, MOST_NAMED)) or "none") + more


def meant(word: str, known: Iterable[str]) -> str:
    """Return a question after the name that was probably meant, to be put behind a message; or nothing."""
    close = nearest(word, known)
    return f" (did you mean {close!r}?)" if close else ""


def unknown(kind: str, name: str, known: Collection[str]) -> str:
    """Say that there is no such name; a kind may be two, as in ``pod or container``."""
    return f"no {kind} {name!r} ({kind.replace(' or ', 's or ')}s: {listed(known)})"


def _fault(error: Any) -> Fault:
    path = tuple(part for part in error["loc"] if part != "[key]")
    if error["type"] == "extra_forbidden":
        return Fault(path, "no such field")
    if error["type"] == "missing":
        return Fault(path, "this field is required")
    text: str = error["msg"].removeprefix("Value error, ")
    if text.startswith("Input should be a valid dictionary"):  # and of JSON "an object"
        return Fault(path, "input should be a mapping, as in {name: value}")
    return Fault(path, text[0].lower() + text[1:] if text.startswith(("Input", "String", "List")) else text)
