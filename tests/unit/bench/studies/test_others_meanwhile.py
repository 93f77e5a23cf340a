"""What other processes took between two looks."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bench.studies import machine
from bench.studies.machine import Ticks, taken

SHELL, COMPILER, EDITOR = (10, 100), (11, 200), (12, 150)


@pytest.mark.parametrize(
    ("before", "after", "ticks"),
    [
        ({SHELL: (5, 0)}, {SHELL: (5, 0)}, 0),
        ({SHELL: (5, 0)}, {SHELL: (45, 0)}, 40),
        ({SHELL: (5, 0)}, {SHELL: (5, 0), COMPILER: (70, 0)}, 70),
        ({SHELL: (5, 0)}, {SHELL: (5, 90)}, 90),  # came and went
        ({SHELL: (5, 0), COMPILER: (70, 0)}, {SHELL: (5, 90)}, 20),  # was there before, and ended
        ({EDITOR: (8, 0), COMPILER: (70, 0)}, {EDITOR: (9, 0)}, 1),  # ended, and nobody waited for it
        ({COMPILER: (70, 0)}, {(11, 300): (30, 0)}, 30),  # another one of the same number
    ],
)
def test_time_counts_wherever_it_went(before: Ticks, after: Ticks, ticks: int) -> None:
    assert taken(before, after) == ticks


def test_what_this_process_started_is_its_own() -> None:
    own = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    try:
        assert own.pid not in {pid for pid, _ in machine.look()[1]}
    finally:
        own.communicate()
