"""Did the machine run all the time? A thread that wants to wake every 10 ms, and notes when it could not.

A virtual machine may be stopped by its host for tens of milliseconds without a trace in ``/proc/stat``. Every
flow then misses those milliseconds, whatever keeps its guarantee. The moments at which nothing ran here are
recorded, so that such a miss can be told from a broken promise.
"""

from __future__ import annotations

import time

from bench.recording import Stall
from bench.watching import Watcher

BEAT_SECONDS = 0.01
# Ordinary waits for a busy processor are a few milliseconds; a third of the shortest sample is worth noting.
LATE_SECONDS = 0.03


class Heartbeat(Watcher):
    """Beats from ``start`` until the end of the ``with`` block; ``stalls`` then holds when it could not."""

    def __init__(self) -> None:
        super().__init__()
        self.stalls: list[Stall] = []

    def _watch(self) -> None:
        last = time.monotonic()
        while not self._stop.wait(BEAT_SECONDS):
            now = time.monotonic()
            if now - last > BEAT_SECONDS + LATE_SECONDS:
                self.stalls.append(Stall(start_s=last - self._zero, end_s=now - self._zero))
            last = now
