import os
import threading
import time

import pytest

from bench.observations.processors import (
    BEAT_SECONDS,
    LATE_SECONDS,
    SaturationWatcher,
    StallWatcher,
    saturated,
)
from bench.recording.records import Stall
from tests.waiting import until


def test_it_beats_until_the_block_ends() -> None:
    zero = time.monotonic()
    with StallWatcher() as watcher:
        watcher.start(zero)
        threads = threading.active_count()
    assert threading.active_count() == threads - len(os.sched_getaffinity(0))


def test_a_stall_is_noted_with_its_time() -> None:
    """Stand still by holding the interpreter: a comparison of long integers lets no other thread run."""
    zero = time.monotonic()
    with StallWatcher() as watcher:
        watcher.start(zero)
        while time.monotonic() < zero + 0.05:
            time.sleep(0.005)
        begin = time.monotonic()
        while time.monotonic() - begin < 0.01:
            pow(3, 3_000_000)  # one call, about 100 ms, that never gives the interpreter away
        end = time.monotonic()
        until(lambda: watcher.stalls)
    longest = max(watcher.stalls, key=lambda stall: stall.end_s - stall.start_s)
    assert longest.end_s - longest.start_s > BEAT_SECONDS + LATE_SECONDS
    assert meets(longest, begin - zero, end - zero)


def meets(stall: Stall, begin: float, end: float) -> bool:
    return stall.start_s < end and begin < stall.end_s


def test_one_that_never_began_ends_all_the_same() -> None:
    with StallWatcher() as watcher:
        pass
    assert watcher.stalls == []


Idle = tuple[int, int]  # ticks with nothing to do, and of waiting for disks


def stat(*processors: Idle | None) -> str:
    """Return a reading of ``/proc/stat``; None is a processor that is switched off."""
    lines = [
        f"cpu{number} 9 0 9 {idle[0]} {idle[1]} 0 9 0 0 0"
        for number, idle in enumerate(processors)
        if idle is not None
    ]
    return "\n".join(["cpu  9 0 9 100 100 0 9 0 0 0", *lines, "intr 12", ""])


@pytest.mark.parametrize(
    ("after", "full"),
    [
        (stat((11, 5), (21, 5)), False),
        (stat((11, 5), (20, 5)), True),  # one is enough
        (stat((11, 5), (20, 6)), False),  # waiting for disks is time to spare
        (stat((11, 5), None), False),  # switched off meanwhile
    ],
)
def test_a_processor_without_an_idle_tick_is_saturated(after: str, full: bool) -> None:
    assert saturated(stat((10, 5), (20, 5)), after) is full


def test_it_watches_until_the_block_ends() -> None:
    with SaturationWatcher() as saturation:
        saturation.start(time.monotonic())
        threads = threading.active_count()
    assert threading.active_count() == threads - 1
