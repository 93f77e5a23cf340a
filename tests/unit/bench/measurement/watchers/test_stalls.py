import os
import threading
import time

from bench.measurement.watchers.stalls import BEAT_SECONDS, LATE_SECONDS, StallWatcher


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
        while not watcher.stalls and time.monotonic() < end + 5:
            time.sleep(0.005)
    longest = max(watcher.stalls, key=lambda stall: stall.end_s - stall.start_s)
    assert longest.end_s - longest.start_s > BEAT_SECONDS + LATE_SECONDS
    assert longest.start_s < end - zero
    assert longest.end_s > begin - zero


def test_one_that_never_began_ends_all_the_same() -> None:
    with StallWatcher() as watcher:
        pass
    assert watcher.stalls == []
