"""How things are said: word for word. Rich would wrap lines, and take ``[a]`` and ``:a:`` for its own.

But for what a terminal would take for an order: names of files and what programs say come from outside. That
is shown with Python's escapes. And where there is no ``./invokew``, commands are called what they are there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from testbed import resources

if TYPE_CHECKING:
    from rich.console import Console

    from bench.presentation.commands import Following


def say(text: str, style: str = "", *, console: Console | None = None, end: str = "\n") -> None:
    """Say what was asked for, or how far it is."""
    from bench.presentation.wording import verbatim

    (console or _console()).print(verbatim(resources.as_typed(text), style), soft_wrap=True, end=end)


def lead(following: Following) -> None:
    """Say what to run next, as the last of all."""
    from bench.presentation import tables

    _console().print(tables.next_step(following), soft_wrap=True)


def complain(text: str) -> None:
    """Say what is wrong, where errors go."""
    say(text, "red", console=_console(stderr=True))


def timed() -> Callable[[str], None]:
    """Return what says how far something is, and since when it has been going on."""
    started = time.monotonic()

    def tell(stage: str) -> None:
        say(f"{time.monotonic() - started:6.1f} s  {stage}")

    return tell


def _console(*, stderr: bool = False) -> Console:
    from rich.console import Console  # its time is nobody's who is told nothing

    return Console(stderr=stderr)
