import os
import threading
import time

from bench.observations.stalls import BEAT_SECONDS, LATE_SECONDS, StallWatcher
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
