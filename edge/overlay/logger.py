"""A program's log on standard error: one line an event, and never so many that they do harm."""

from __future__ import annotations

import threading
import time
from typing import TextIO

LINES_A_SECOND = 100
MOST_REMEMBERED = 1000  # lines


class Logger:
    """Writes lines; those over the number of a second are counted, and the count is written."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._lock = stream, threading.Lock()
        self._second, self._written, self._left_out = 0, 0, 0
        self._said: set[str] = set()

    def __call__(self, words: str) -> None:
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
            self._write(now, words)

    def once(self, words: str) -> None:
        """Write a line, unless it was written before."""
        if words not in self._said:
            if len(self._said) >= MOST_REMEMBERED:
                self._said.clear()
            self._said.add(words)
            self(words)

    def _write(self, now: float, words: str) -> None:
        clock = time.strftime("%H:%M:%S", time.localtime(now))
        self._stream.write(f"{clock}.{int(now % 1 * 1000):03d} {words}\n")
        self._stream.flush()
