"""Which other runs go on on this machine? Two at once take each other's processors, and both should say so.

A run is known by its sandbox, anybody's. A testbed that somebody keeps up is none: it has no traffic of its
own. This is no lock, and changes no verdict by itself: what another run takes is processor time, and whether
that was short, every sample tells (``bench.analysis.excuses``).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from bench.observations.observation import Observation, Scene, Seen


class Others(NamedTuple):
    """What was seen at one moment."""

    runs: frozenset[str]  # of others, in words
    hidden: bool  # whether there may be more


class Neighbours(Observation):
    """Looks right before the traffic and right after it."""

    name = "neighbours"

    def before(self, scene: Scene) -> Others:
        """Return which runs there are now."""
        return look()

    def after(self, scene: Scene, before: Others) -> Seen:
        """Say which runs there were at either moment."""
        return Seen(notes=notes(before, look()))


def look() -> Others:
    """Look for the sandboxes of other processes' runs."""
    from testbed.providers.netns.processes import RUN, first_processes, hidden

    runs = {
        f"process {first.pid} of user {first.user}"
        for first in first_processes()
        if first.name == RUN and _starter(first.pid) != os.getpid()
    }
    return Others(frozenset(runs), hidden())


def notes(before: Others, after: Others) -> list[str]:
    """Return in words what was beside the traffic, seen right before and right after it."""
    runs = sorted(before.runs | after.runs)
    found = [f"another run went on on this machine meanwhile: {run}" for run in runs]
    if before.hidden or after.hidden:
        found.append("not readable: whether other users' runs went on meanwhile, for /proc hides processes")
    return found


def _starter(pid: int) -> int | None:
    """Return which process has a sandbox: it has started unshare, which has started the first process."""
    parent = _parent(pid)
    return None if parent is None else _parent(parent)


def _parent(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[1])
