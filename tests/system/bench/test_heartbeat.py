"""A processor that stands still while another runs on."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from bench.heartbeat import Heartbeat

# Nothing else runs on a processor while a real-time process does (sched(7)).
HOG = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
begin = time.monotonic()
while time.monotonic() < begin + 0.1:
    pass
print(begin, time.monotonic())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes real-time processes")
@pytest.mark.parametrize("processor", sorted(os.sched_getaffinity(0)))
def test_a_stall_of_one_processor_is_noted(processor: int) -> None:
    zero = time.monotonic()
    with Heartbeat() as heartbeat:
        heartbeat.start(zero)
        hog = subprocess.run(
            [sys.executable, "-c", HOG, str(processor)], stdout=subprocess.PIPE, text=True, check=True
        )
        begun, ended = (float(moment) - zero for moment in hog.stdout.split())
        middle = (begun + ended) / 2
        deadline = time.monotonic() + 5
        while not noted(heartbeat, middle) and time.monotonic() < deadline:
            time.sleep(0.01)
    assert noted(heartbeat, middle)


def noted(heartbeat: Heartbeat, moment: float) -> bool:
    return any(stall.start_s < moment < stall.end_s for stall in heartbeat.stalls)
