"""What this machine's processors did while something was measured, and what others took of them.

Busy is what was neither idle, nor waiting for a disk, nor taken by the hypervisor: the kernel counts idle
time exactly and everything else by ticks. ``/proc/stat`` tells hundredths of a second (USER_HZ, proc(5)).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.observations.procfs import cpu_ticks, idle_ticks
from bench.recording.records import Entry

# Processors that others may take, on average: a process that wants all it can get takes one.
MOST_OTHERS = 0.1
USER_HZ = 100
STEAL = 7  # its place among the numbers
KTHREADD = 2  # whose children the kernel's threads are


class Reading(Entry):
    """The processors at one moment."""

    ns: int
    stat: str  # the lines of /proc/stat that are about them


class Meanwhile(Entry):
    """What else went on on the machine."""

    readings: tuple[Reading, Reading]  # before and after
    others_s: float | None  # processor seconds of processes that are not the measurement's; None: not seen


class Spent(NamedTuple):
    """What was spent between two readings."""

    seconds: float  # that passed
    processors: int
    busy_s: float
    stolen_s: float

    @property
    def busy(self) -> float:
        """How many processors were busy, on average."""
        return self.busy_s / self.seconds if self.seconds else 0.0


def spent(first: Reading, last: Reading) -> Spent:
    """Return what all processors together did between two readings, in seconds of one processor."""
    before, after = cpu_ticks(first.stat), cpu_ticks(last.stat)
    seconds, processors = (last.ns - first.ns) / 1e9, len(after) - 1
    ticks = [b - a for a, b in zip(before["cpu"], after["cpu"], strict=True)]
    stolen = ticks[STEAL] / USER_HZ
    busy = seconds * processors - idle_ticks(ticks) / USER_HZ - stolen
    return Spent(seconds, processors, max(busy, 0.0), stolen)


def neighbours(what: Meanwhile) -> Iterator[str]:
    """Yield, in words, what else there was on the machine."""
    yield from others(what.others_s, *what.readings)


def others(seconds: float | None, first: Reading, last: Reading) -> Iterator[str]:
    """Yield, in words, that other processes took more than they may, between two readings."""
    passed = (last.ns - first.ns) / 1e9
    if seconds is not None and seconds > MOST_OTHERS * passed:
        yield f"other processes took {seconds:.2f} s of processors in {passed:.2f} s"


class Process(NamedTuple):
    """What /proc/PID/stat says (proc(5))."""

    parent: int
    ticks: int  # of user and system time, its own
    children: int  # the same of its children that have ended
    start: int


# Ticks of processes by their id and start: their own, and of children that have ended.
Ticks = dict[tuple[int, int], tuple[int, int]]
Look = tuple[Reading, Ticks]


def look() -> Look:
    """Return a reading of the processors, and the ticks of every process of others."""
    processes = dict(_processes())
    mine = _descendants(processes, os.getpid())
    theirs = {
        (pid, one.start): (one.ticks, one.children)
        for pid, one in processes.items()
        if pid not in mine and pid != KTHREADD and one.parent != KTHREADD
    }
    stat = "".join(
        f"{line}\n"
        for line in Path("/proc/stat").read_text(encoding="ascii").splitlines()
        if line.startswith("cpu")
    )
    return Reading(ns=time.monotonic_ns(), stat=stat), theirs


def since(before: Look, after: Look) -> Meanwhile:
    """Return what was there between two looks."""
    seconds = taken(before[1], after[1]) / os.sysconf("SC_CLK_TCK") if after[1] else None
    return Meanwhile(readings=(before[0], after[0]), others_s=seconds)


def taken(before: Ticks, after: Ticks) -> int:
    """Return the ticks that processes took between two looks, those that ended meanwhile included.

    Whose parent does not wait for it takes its time with it: then what is left of the others counts.
    """
    together = sum(map(sum, after.values())) - sum(map(sum, before.values()))
    left = sum(own - before.get(key, (0, 0))[0] for key, (own, _) in after.items())
    return max(together, left)


def _processes() -> list[tuple[int, Process]]:
    found = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdecimal():
            continue
        try:
            stat = Path(entry.path, "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:  # it has ended
            continue
        words = stat.rpartition(")")[2].split()
        parent, start, *ticks = (int(words[number]) for number in (1, 19, 11, 12, 13, 14))
        found.append((int(entry.name), Process(parent, sum(ticks[:2]), sum(ticks[2:]), start)))
    return found


def _descendants(processes: dict[int, Process], first: int) -> set[int]:
    children: dict[int, list[int]] = {}
    for pid, one in processes.items():
        children.setdefault(one.parent, []).append(pid)
    found, left = set(), [first]
    while left:
        pid = left.pop()
        found.add(pid)
        left += children.get(pid, [])
    return found
