"""What processes that are not the measurement's take of the processors.

Ours are this process and all that it has started, a sandbox's among them. Threads of the kernel are nobody's:
they work for our packets, too. What comes and goes between two looks is seen as well: when a process ends,
its time becomes that of its parent's children (proc(5), cutime and cstime).
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

from bench.studies.backends.records import Beside, Reading

KTHREADD = 2  # whose children the kernel's threads are


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
    others = {
        (pid, one.start): (one.ticks, one.children)
        for pid, one in processes.items()
        if pid not in mine and pid != KTHREADD and one.parent != KTHREADD
    }
    stat = "".join(
        f"{line}\n"
        for line in Path("/proc/stat").read_text(encoding="ascii").splitlines()
        if line.startswith("cpu")
    )
    return Reading(ns=time.monotonic_ns(), stat=stat), others


def since(before: Look, after: Look) -> Beside:
    """Return what was there between two looks."""
    seconds = spent(before[1], after[1]) / os.sysconf("SC_CLK_TCK") if after[1] else None
    return Beside(readings=(before[0], after[0]), others_s=seconds)


def spent(before: Ticks, after: Ticks) -> int:
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
