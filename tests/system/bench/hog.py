"""A process that leaves a processor to nothing else for a while."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROCESSORS = sorted(os.sched_getaffinity(0))
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes real-time processes")

# Nothing else runs on a processor while a real-time process does (sched(7)).
HOG = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
begin = time.monotonic()
while time.monotonic() < begin + float(sys.argv[2]):
    pass
print(begin, time.monotonic())
"""


def hog(processor: int, seconds: float) -> tuple[float, float]:
    """Hold a processor that long; return when that began and ended, on the monotonic clock."""
    command = [sys.executable, "-c", HOG, str(processor), str(seconds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    begun, ended = map(float, done.stdout.split())
    return begun, ended
