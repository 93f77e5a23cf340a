"""Shells at a terminal of their own, into which tests type as people do."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pexpect  # type: ignore[import-untyped]

PROMPT = "ready> "
COLUMNS = 200
PATIENCE_SECONDS = 90


class Said(NamedTuple):
    """What came after a line was typed."""

    status: int
    words: str


class Terminal:
    """A shell that waits for lines."""

    def __init__(self, process: pexpect.spawn) -> None:
        self._process = process

    def typed(self, line: str) -> Said:
        """Type a line, and return its exit status and what was shown, in the terminal's order."""
        self._process.sendline(f"{line}; echo status=$?.")
        self._process.expect(r"status=(\d+)\.\r\n")
        said = Said(
            int(self._process.match[1]), self._process.before.partition("\n")[2].replace("\r\n", "\n")
        )
        self._process.expect_exact(PROMPT)
        return said

    def completes(self, begun: str, into: str) -> float:
        """Press Tab behind what was typed, see that it becomes ``into``, and return the seconds that it took.

        Fails, by pexpect's own error, if it becomes something else.
        """
        self._process.send(begun)
        self._process.expect_exact(begun)
        began = time.monotonic()
        self._process.send("\t")
        self._process.expect(re.escape(into.removeprefix(begun)))
        took = time.monotonic() - began
        self._process.send("\x01echo :\r")  # Ctrl-A: the line is said instead
        self._process.expect_exact(f"\n:{into.rstrip()}\r\n")
        self._process.expect_exact(PROMPT)
        return took

    def offers(self, begun: str) -> set[str]:
        """Press Tab twice behind what was typed, and return the words that are offered."""
        self._process.send(f"{begun}\t\t")
        self._process.expect_exact(begun)
        self._process.expect_exact(PROMPT)
        offered = set(self._process.before.split())
        # Ctrl-U may show the prompt once more; what a command says comes before the next one alone.
        self._process.send("\x15echo :\r")
        self._process.expect_exact("\n:\r\n")
        self._process.expect_exact(PROMPT)
        return offered


@contextmanager
def terminal(shell: Sequence[str], directory: Path, home: Path, start: str) -> Iterator[Terminal]:
    """Start a shell in a directory, with a home that has nothing of anybody's, and a first line typed."""
    environment = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": str(home), "ZDOTDIR": str(home), "TERM": "dumb", "PS1": PROMPT, "LC_ALL": "C.UTF-8",
    }  # fmt: skip
    process = pexpect.spawn(
        shell[0], list(shell[1:]), env=environment, cwd=str(directory), encoding="utf-8",
        dimensions=(50, COLUMNS), timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    process.delaybeforesend = None  # what is typed is not hidden, as a password's prompt wants it
    try:
        process.expect_exact(PROMPT)
        found = Terminal(process)
        found.typed(start)
        yield found
    finally:
        process.close(force=True)
