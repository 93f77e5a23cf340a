"""What a program that goes on for ever says of itself."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TextIO

LINES_A_SECOND, MOST_REMEMBERED = 100, 1000


class Logger:
    """A program's log, a line an event; how many more there were in a second is one line.

    A line that cannot be written, on a full disk or to a reader that ended, is lost, and its program goes on.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._lock = stream, threading.Lock()
        self._second, self._written, self._left_out = 0, 0, 0
        self._said: set[str] = set()

    def __call__(self, text: str) -> None:
        """Write one line, with the time of day before it."""
        with self._lock:
            now = time.time()
            if int(now) != self._second:
                if self._left_out:
                    self._write(now, f"and {self._left_out} lines more")
                self._second, self._written, self._left_out = int(now), 0, 0
            if self._written >= LINES_A_SECOND:
                self._left_out += 1
                return
            self._written += 1
            self._write(now, text)

    def once(self, text: str) -> None:
        """Write a line, unless it was written before."""
        if text not in self._said:
            if len(self._said) >= MOST_REMEMBERED:
                self._said.clear()
            self._said.add(text)
            self(text)

    def _write(self, now: float, text: str) -> None:
        clock = time.strftime("%H:%M:%S", time.localtime(now))
        with suppress(OSError):
            self._stream.write(f"{clock}.{int(now % 1 * 1000):03d} {text}\n")
            self._stream.flush()
