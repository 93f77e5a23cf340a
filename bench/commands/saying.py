"""How verbs say things: word for word, where rich would wrap lines and take brackets for markup."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console


def say(words: str, style: str = "") -> None:
    """Say what was asked for, or how far it is."""
    _print(Console(), words, style)


def complain(words: str) -> None:
    """Say what is wrong, where errors go."""
    _print(Console(stderr=True), words, "red")


def timed() -> Callable[[str], None]:
    """Return what says how far something is, and since when it has been going on."""
    started = time.monotonic()

    def tell(stage: str) -> None:
        say(f"{time.monotonic() - started:6.1f} s  {stage}")

    return tell


def _print(console: Console, words: str, style: str) -> None:
    console.print(words, style=style, markup=False, highlight=False, soft_wrap=True)
