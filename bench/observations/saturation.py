"""When a processor of this machine had no idle time, looked at as often as samples are taken.

A flow's packets are one processor's at a time. The half seconds of ``rates`` are too long to tell: a
processor that was saturated in three samples of five, and had room in two, was 95 % busy on average.
"""

from __future__ import annotations

import time
from pathlib import Path

from bench.observations.observation import Observation, Seen, Watcher
from bench.observations.procfs import cpu_ticks, idle_ticks
from bench.recording.records import Stretch

WINDOW_SECONDS = 0.1  # a usual sample


class Saturation(Observation):
    """Watches all the time; which samples it excuses, ``bench.analysis.excuses`` says."""

    name = "saturation"

    def watching(self) -> SaturationWatcher:
        """Return what looks at all processors."""
        return SaturationWatcher()


class SaturationWatcher(Watcher):
    """Looks at every processor's idle time; ``stretches`` then holds when one had none.

    None is less than a tick of ``/proc/stat``: 10 ms (USER_HZ, proc(5)), the tenth of a window which a sample
    must not miss (the scenario's thresholds.sample).
    """

    def __init__(self) -> None:
        super().__init__()
        self.stretches: list[Stretch] = []

    @property
    def seen(self) -> Seen:
        """The same, for the recording."""
        return Seen(fields={"saturated": self.stretches})

    def _watch(self) -> None:
        last, before = time.monotonic(), _stat()
        while not self._stop.wait(WINDOW_SECONDS):
            now, after = time.monotonic(), _stat()
            if saturated(before, after):
                self.stretches.append(Stretch(start_s=last - self._zero, end_s=now - self._zero))
            last, before = now, after


def saturated(before: str, after: str) -> bool:
    """Tell whether any processor had no idle tick between two readings of ``/proc/stat``.

    A processor that is in one reading only was switched on or off meanwhile.
    """
    first, second = _idle(before), _idle(after)
    return any(first[name] == second[name] for name in first.keys() & second.keys())


def _idle(stat: str) -> dict[str, int]:
    return {name: idle_ticks(spent) for name, spent in cpu_ticks(stat).items() if name != "cpu"}


def _stat() -> str:
    return Path("/proc/stat").read_text(encoding="ascii")
