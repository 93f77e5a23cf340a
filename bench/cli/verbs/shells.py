"""What shells are told, so that they complete lines."""

from __future__ import annotations

from bench.cli import completion
from bench.cli.exits import HELD
from bench.cli.program import NAME
from testbed.resources import PROGRAM


def show(shell: str) -> int:
    """Print the script for a shell. Raises LookupError for one that there is none for."""
    names = list(dict.fromkeys([NAME, PROGRAM]))
    print(completion.script(shell, names), end="")  # noqa: T201 (a shell reads it)
    return HELD
