"""When a processor of this machine stood still, or had no idle time: it may be the machine that was short.

A virtual machine may be stopped by its host for tens of milliseconds without a trace in ``/proc/stat``, or
one of its processors, with every packet that it has in hand. Flows then miss those milliseconds, whatever
keeps their guarantees. So on each processor a thread wants to wake every 10 ms, and the moments at which it
could not are recorded, so that such a miss can be told from a broken promise.

A flow's packets are one processor's at a time. The half seconds of ``rates`` are too long to tell: a
processor that was saturated in three samples of five, and had room in two, was 95 % busy on average. So idle
time is looked at as often as samples are taken.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.observations.observation import Observation, Seen, Watcher
from bench.observations.procfs import cpu_ticks, idle_ticks
from bench.recording.records import RunRecord, Stall, Stretch

BEAT_SECONDS = 0.01
# Ordinary waits for a busy processor are a few milliseconds. A tenth of the shortest usual sample, 0.1 s, is
# what makes it one that missed its guarantee (the scenario's thresholds.sample).
LATE_SECONDS = 0.01


class Stalls(Observation):
    """Watches all the time; which samples a stall excuses, ``bench.analysis.excuses`` says."""

    name = "stalls"

    def watching(self) -> StallWatcher:
        """Return what looks at all processors."""
        return StallWatcher()

    def notes(self, record: RunRecord) -> Iterator[str]:
        """Say how often the machine stood still in a run, and how long."""
        lengths = [stall.end_s - stall.start_s for done in record.repetitions for stall in done.stalls]
        if lengths:
            count = f"{len(lengths)} times" if len(lengths) > 1 else "once"
            yield f"the machine stood still {count}, for {max(lengths) * 1000:.0f} ms at the longest"


class StallWatcher:
    """Watches all processors, as a Watcher does one; ``stalls`` then holds when one stood still."""

    def __init__(self) -> None:
        self._each = [_Processor(number) for number in sorted(os.sched_getaffinity(0))]
        self._running = ExitStack()

    @property
    def stalls(self) -> list[Stall]:
        """The stalls of all processors, in order."""
        return sorted((stall for one in self._each for stall in one.stalls), key=lambda stall: stall.start_s)

    @property
    def seen(self) -> Seen:
        """The same, for the recording."""
        return Seen(fields={"stalls": self.stalls})

    def __enter__(self) -> Self:
        for one in self._each:
            self._running.enter_context(one)
        return self

    def start(self, zero: float) -> None:
        """Begin to watch; ``zero`` is the run's beginning on the monotonic clock."""
        for one in self._each:
            one.start(zero)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.__exit__(kind, error, trace)


class _Processor(Watcher):
    """Wakes every 10 ms on one processor; ``stalls`` then holds when it woke too late."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.stalls: list[Stall] = []
        self._number = number

    def _watch(self) -> None:
        # Of this thread alone: sched_setaffinity(2) is about threads. A thread that is free to go is woken on
        # whatever processor runs, and so would never see that one does not.
        os.sched_setaffinity(0, {self._number})
        last = time.monotonic()
        while not self._stop.wait(BEAT_SECONDS):
            now = time.monotonic()
            if now - last > BEAT_SECONDS + LATE_SECONDS:
                self.stalls.append(Stall(start_s=last - self._zero, end_s=now - self._zero))
            last = now


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
