"""Processes that leave a processor to nothing else for a while."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

import pytest

from bench.recording.records import Stretch
from tests.waiting import until

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


# The same again and again, for 80 of 100 ms: less than the kernel lets such a process have of a second
# (sched_rt_runtime_us), and more than traffic can do without.
HOGS = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
while True:
    end = time.monotonic() + 0.08
    while time.monotonic() < end:
        pass
    time.sleep(0.02)
"""


class Watching(AbstractContextManager[Any], Protocol):
    """What watches the processors, from ``start`` until the end of its block."""

    def start(self, zero: float) -> None: ...


def until_noted(
    watching: Watching, found: Callable[[], Sequence[Stretch]], processor: int, seconds: float
) -> None:
    """Hold a processor that long, and wait until the middle of that is among what is found."""
    zero = time.monotonic()
    with watching:
        watching.start(zero)
        begun, ended = _hold(processor, seconds)
        middle = (begun + ended) / 2 - zero
        until(lambda: _within(found(), middle))


@contextmanager
def on_all() -> Iterator[None]:
    """Keep every processor from all others, most of the time, until the end of the block."""
    started = [subprocess.Popen([sys.executable, "-c", HOGS, str(processor)]) for processor in PROCESSORS]
    try:
        yield
    finally:
        for one in started:
            one.kill()
            one.wait()


def _hold(processor: int, seconds: float) -> tuple[float, float]:
    """Return when it began and ended, on the monotonic clock."""
    command = [sys.executable, "-c", HOG, str(processor), str(seconds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    begun, ended = map(float, done.stdout.split())
    return begun, ended


def _within(stretches: Sequence[Stretch], moment: float) -> bool:
    return any(stretch.start_s < moment < stretch.end_s for stretch in stretches)
