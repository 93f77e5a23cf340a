"""What is mounted where one gets to it.

A sandbox begins with a copy of the host's mounts, and hides many of them below its own /run. Those still go
from its table whenever somebody on the host removes what they are mounted at (fs/namespace.c,
__detach_mounts), so whoever compares a sandbox's mounts leaves them out.
"""

from __future__ import annotations

from typing import NamedTuple


class Mounted(NamedTuple):
    """One line of ``/proc/PID/mountinfo`` (proc_pid_mountinfo(5))."""

    number: str
    parent: str
    point: str
    what: str


def reachable(mountinfo: str) -> list[tuple[str, str]]:
    """Return where something is mounted, and what, without all that another mount hides."""
    table = {one.number: one for one in map(_parsed, mountinfo.splitlines())}
    return [(one.point, one.what) for one in table.values() if not _is_hidden(one, table)]


def _parsed(line: str) -> Mounted:
    place, _, what = line.partition(" - ")
    number, parent, _, _, point, *_ = place.split()
    return Mounted(number, parent, point, what)


def _is_hidden(mount: Mounted, table: dict[str, Mounted]) -> bool:
    """Return whether the way to it from the mount it is on, or from one further up, leads into another."""
    covered = any(
        other.parent == mount.parent and mount.point.startswith(f"{other.point}/") for other in table.values()
    )
    above = table.get(mount.parent)
    return covered or (above is not None and above is not mount and _is_hidden(above, table))
