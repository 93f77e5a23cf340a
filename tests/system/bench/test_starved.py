"""Runs on a machine that others keep busy: it disturbs whatever runs beside it, so it runs alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench import pipeline
from bench.measurement import experiment
from bench.recording import requests
from bench.recording.records import Request
from tests.system.bench.test_experiment import SHORT, Watcher, kinds

# Keeps one processor from all others for 80 of 100 ms, whatever they are: less than the kernel lets such a
# process have of a second (sched_rt_runtime_us), and more than the traffic can do without.
HOG = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
while True:
    end = time.monotonic() + 0.08
    while time.monotonic() < end:
        pass
    time.sleep(0.02)
"""


@contextmanager
def hogs() -> Iterator[None]:
    """Keep every processor busy."""
    started = [
        subprocess.Popen([sys.executable, "-c", HOG, str(processor)])
        for processor in sorted(os.sched_getaffinity(0))
    ]
    try:
        yield
    finally:
        for one in started:
            one.kill()
            one.wait()


@pytest.mark.long(one_in=0)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root has real-time processes")
@pytest.mark.parametrize("turn", range(int(os.environ.get("CONCORDE_STARVED_RUNS", "1"))))
def test_a_hog_on_every_processor_is_the_machine_s_fault(turn: int, tmp_path: Path) -> None:
    request = Request(scenario="kubernetes", overrides=tuple(SHORT[:-1]), reports=str(tmp_path))
    with hogs():
        recording = experiment.run(request, requests.read(request), Watcher("test"))
    summary = pipeline.analyse(recording)
    assert summary.verdict == "invalid", summary.reasons
    assert kinds(summary) == {"machine"}, summary.reasons
