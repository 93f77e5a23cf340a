"""What processes that are not the measurement's take of the processors.

Ours are this process and all that it has started, a sandbox's among them. Threads of the kernel are nobody's:
they work for our packets, too.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

from bench.recording.ways import Beside, Reading

KTHREADD = 2  # whose children the kernel's threads are


class Process(NamedTuple):
    """What /proc/PID/stat says (proc(5))."""

    parent: int
    ticks: int  # of user and system time
    start: int


Look = tuple[Reading, dict[tuple[int, int], int]]  # ticks by process id and start


def look() -> Look:
    """Return a reading of the processors, and the ticks of every process of others."""
    processes = dict(_processes())
    mine = _descendants(processes, os.getpid())
    others = {
        (pid, one.start): one.ticks
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
    """Return what was there between two looks. What ended meanwhile is not seen."""
    ticks = sum(spent - before[1].get(key, 0) for key, spent in after[1].items())
    seconds = ticks / os.sysconf("SC_CLK_TCK") if after[1] else None
    return Beside(readings=(before[0], after[0]), others_s=seconds)


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
        found.append(
            (int(entry.name), Process(int(words[1]), int(words[11]) + int(words[12]), int(words[19])))
        )
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
