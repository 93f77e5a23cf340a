"""Runs the commands that fetch and build: to their end, or to none at all when somebody loses patience."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from testbed.access.place import CommandError

LAST_LINES = 15


def run(
    what: str,
    argv: Sequence[str],
    log: Path,
    *,
    directory: Path | None = None,
    environment: Mapping[str, str] | None = None,
    check: bool = True,
) -> str:
    """Run a command and return what it printed; raise CommandError with its last lines if it failed.

    It runs in a session of its own, which ends with this call: after Ctrl-C nothing goes on writing. ``what``
    is being done, for the message; ``log`` is a file that gets what is printed.
    """
    with log.open("wb") as out:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *argv],
            cwd=directory or log.parent,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
    words = log.read_text(encoding="utf-8", errors="replace")
    if check and status != 0:
        raise CommandError(what, argv, status, last_lines(words))
    return words


def last_lines(words: str) -> str:
    """Return the last lines of what a command printed."""
    return "\n".join(words.rstrip().splitlines()[-LAST_LINES:])
