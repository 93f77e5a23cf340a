"""Programs that say, line by line, how far they are: nobody waits longer than for the line."""

from __future__ import annotations

import json
import os
import select
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from testbed.access.place import Place, Process

READY_SECONDS = 60.0  # a command in a pod of an emulated machine takes seconds to begin, and to be heard of


class TalkError(RuntimeError):
    """A program did not say what it should have said; the message holds its own last words."""


class SilenceError(TalkError):
    """A program said nothing for as long as it was given."""


class Talk:
    """A program under way; see ``talking``."""

    def __init__(self, name: str, process: Process, descriptor: int, errors: Path) -> None:
        self._name, self._process, self._descriptor, self._errors = name, process, descriptor, errors
        self._rest = b""

    def begin(self) -> None:
        """Let it begin: send a line."""
        self._process.release()

    def end(self) -> None:
        """End its standard input."""
        self._process.end_input()

    def expect(self, word: str, seconds: float) -> None:
        """Wait until it says a word. Raises TalkError."""
        if (said := self.line(seconds)) != word:
            raise TalkError(f"{self._name} said {said!r} instead of {word!r}")

    def data(self, seconds: float) -> Any:
        """Return what its next line says as JSON. Raises TalkError."""
        return json.loads(self.line(seconds))

    def line(self, seconds: float) -> str:
        """Wait for its next line. Raises TalkError when it ends, or says nothing for so long."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self._rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._descriptor], [], [], left)[0]:
                raise SilenceError(f"{self._name} said nothing for {seconds:g} s: {self._words()}")
            more = os.read(self._descriptor, 1 << 16)
            if not more:
                raise TalkError(f"{self._name} ended: {self._words()}")
            self._rest += more
        said, _, self._rest = self._rest.partition(b"\n")
        return said.decode("ascii")

    def _words(self) -> str:
        words = self._errors.read_text(encoding="utf-8", errors="replace").strip()
        return words.rpartition("\n")[2] or "without a word"


def talking(place: Place, program: Path, wishes: object) -> AbstractContextManager[Talk]:
    """Start one of our programs where this machine's files are seen; see ``started``."""
    return started(place, command(program, wishes), program.stem)


@contextmanager
def started(place: Place, argv: Sequence[str], name: str) -> Iterator[Talk]:
    """Start a program in a place, and wait until it says "ready"; it is killed at the end of the block.

    ``name`` is as people are told it. Raises TalkError.
    """
    with tempfile.TemporaryDirectory() as directory:
        pipe, errors = Path(directory, "said"), Path(directory, "errors")
        os.mkfifo(pipe)
        # Open before there is a writer, who would otherwise wait for a reader.
        descriptor = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        try:
            process = place.start(argv, stdout=pipe, stderr=errors, held=True)
            os.set_blocking(descriptor, True)
            try:
                talk = Talk(name, process, descriptor, errors)
                talk.expect("ready", READY_SECONDS)
                yield talk
            finally:
                process.kill()
        finally:
            os.close(descriptor)


def command(program: Path, wishes: object) -> Sequence[str]:
    """Return what runs one of our programs, where this machine's files are seen."""
    return [sys.executable, "-I", "-S", str(program), json.dumps(wishes)]
