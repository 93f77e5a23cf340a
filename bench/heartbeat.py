"""Did the machine run all the time? A thread that wants to wake every 10 ms, and notes when it could not.

A virtual machine may be stopped by its host for tens of milliseconds without a trace in ``/proc/stat``. Every
flow then misses those milliseconds, whatever keeps its guarantee. The moments at which nothing ran here are
recorded, so that such a miss can be told from a broken promise.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType

from bench.recording import Stall

BEAT_SECONDS = 0.01
# Ordinary waits for a busy processor are a few milliseconds; a third of the shortest sample is worth noting.
LATE_SECONDS = 0.03


class Heartbeat:
    """Beats from ``start`` until the end of the ``with`` block; ``stalls`` then holds when it could not."""

    def __init__(self) -> None:
        self.stalls: list[Stall] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._zero = 0.0

    def __enter__(self) -> Heartbeat:
        return self

    def start(self, zero: float) -> None:
        """Begin to beat; ``zero`` is the run's beginning on the monotonic clock."""
        self._zero = zero
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _beat(self) -> None:
        last = time.monotonic()
        while not self._stop.wait(BEAT_SECONDS):
            now = time.monotonic()
            if now - last > BEAT_SECONDS + LATE_SECONDS:
                self.stalls.append(Stall(start_s=last - self._zero, end_s=now - self._zero))
            last = now
