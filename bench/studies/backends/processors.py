"""What processors did between two readings of ``/proc/stat``, in seconds of one processor.

Busy is what was neither idle, nor waiting for a disk, nor taken by the hypervisor: the kernel counts idle
time exactly and everything else by ticks. It tells hundredths of a second (USER_HZ, proc(5)).
"""

from __future__ import annotations

from typing import NamedTuple

from bench.observations.procfs import cpu_ticks, idle_ticks
from bench.recording.ways import Reading

USER_HZ = 100
STEAL = 7  # its place among the numbers


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
    """Return what all processors together did between two readings."""
    before, after = cpu_ticks(first.stat), cpu_ticks(last.stat)
    seconds, processors = (last.ns - first.ns) / 1e9, len(after) - 1
    ticks = [b - a for a, b in zip(before["cpu"], after["cpu"], strict=True)]
    stolen = ticks[STEAL] / USER_HZ
    busy = seconds * processors - idle_ticks(ticks) / USER_HZ - stolen
    return Spent(seconds, processors, max(busy, 0.0), stolen)
