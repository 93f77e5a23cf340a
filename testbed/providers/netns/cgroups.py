"""A sandbox's cgroups: all that it ever leaves for somebody to remove, for they do not end with a process.

A sandbox that needs cgroups has one directory, in every hierarchy of the host, whose name tells to which
process it belongs: its process id and, because those come back, its start time. So a dead sandbox's directory
is known for one by whoever comes next, and nothing else is ever touched.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

_NAME = re.compile(r"concorde-testbed-(?P<pid>\d+)-(?P<start>\d+)")


def name_of(pid: int) -> str:
    """Return the name of the cgroup of the sandbox with this first process, as the host sees it."""
    return f"concorde-testbed-{pid}-{_start_time(pid)}"


def remove(name: str) -> None:
    """Remove the cgroup of this name with all below it from every hierarchy. Its processes have ended."""
    for hierarchy in _hierarchies():
        for directory, _, _ in os.walk(hierarchy / name, topdown=False):
            with suppress(OSError):  # whoever comes next tries again
                Path(directory).rmdir()


def remove_dead() -> None:
    """Remove the cgroups of sandboxes that have ended without doing so."""
    for name in {
        entry.name for hierarchy in _hierarchies() for entry in hierarchy.glob("concorde-testbed-*")
    }:
        match = _NAME.fullmatch(name)
        if match and str(_start_time(int(match["pid"]))) != match["start"]:
            remove(name)


def mount_points(mounts: str) -> list[str]:
    """Return where cgroup hierarchies of either version are mounted, from the text of ``/proc/mounts``."""
    fields = (line.split() for line in mounts.splitlines())
    return [field[1] for field in fields if field[2] in ("cgroup", "cgroup2")]


def _hierarchies() -> list[Path]:
    return [Path(point) for point in mount_points(Path("/proc/self/mounts").read_text(encoding="utf-8"))]


def _start_time(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot (proc(5)); None if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[19])
