"""What the host limits for all its pods together. It is only looked at: it is an administrator's.

The table of neighbours is one for a whole machine, and only its own network namespace tells how large that
may be (net/core/neighbour.c, neigh_sysctl_register); elsewhere nothing is said.
"""

from __future__ import annotations

from .. import files
from . import shares

ROOT = "/proc/sys/net"
# As many as a kubelet starts unless it is told otherwise (maxPods).
PODS = 110
# Entries, with one for each pod itself.
WANTED = PODS * (shares.NEIGHBOURS + 1)


def narrow() -> list[str]:
    """In words, where there is no room for what a node full of pods may take."""
    return [
        f"{_name(version)} is {room}; {PODS} pods may take {WANTED}: set that (sysctl -w, /etc/sysctl.d)"
        for version, room in _found()
        if room < WANTED
    ]


def too_narrow(pods: int) -> list[str]:
    """In words, where one pod's share alone would leave no room for so many pods themselves."""
    least = pods + shares.NEIGHBOURS
    return [
        f"{_name(version)} is {room}; with {pods} pods it must be {least} at least"
        for version, room in _found()
        if room < least
    ]


def _name(version: str) -> str:
    return f"net.{version}.neigh.default.gc_thresh3"


def _found() -> list[tuple[str, int]]:
    """How many entries each table may have, where that can be read."""
    found = []
    for version in ("ipv4", "ipv6"):
        try:
            room = int(files.read(f"{ROOT}/{version}/neigh/default/gc_thresh3", 32))
        except (OSError, ValueError):
            continue
        found.append((version, room))
    return found
