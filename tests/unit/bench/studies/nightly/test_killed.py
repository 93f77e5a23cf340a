"""The verb itself, killed at any moment, and several at once on one history."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from bench.recording import atomic
from bench.recording.directory import Recording
from bench.studies.nightly import night
from bench.studies.nightly.nightly import History
from tests import cases, verbs

KILLS = cases.count("CONCORDE_KILLS", 1, 50)
AT_ONCE = cases.count("CONCORDE_AT_ONCE", 2, 8)

Recorded = Callable[[str], Recording]


class Nights:
    """Recordings of several nights on one machine, and what goes through them."""

    def __init__(self, held: Recording, directory: Path, count: int) -> None:
        self._directory = directory
        self.recordings = [self._copy(held, number) for number in range(count)]
        self.history = History(directory / "history", night.identity(night.environment(held)))

    def _copy(self, held: Recording, number: int) -> Path:
        copy = self._directory / f"night-{number}"
        subprocess.run(["cp", "-r", str(held.directory), str(copy)], check=True)
        record = held.run_record().model_copy(update={"run_id": f"20260101T{number:06d}Z-held-pod"})
        atomic.write_model(Recording(copy).run_file, record)
        return copy

    def go_through(self, number: int) -> verbs.Started:
        where = ["--history", str(self._directory / "history"), "--to", str(self._directory / "exports")]
        return verbs.start("nightly", "--replay", str(self.recordings[number]), *where)

    def takes(self, number: int) -> float:
        """Return the seconds of a night that nothing interrupts."""
        begun = time.monotonic()
        assert self.ends(self.go_through(number)) == 0
        return time.monotonic() - begun

    def ends(self, process: verbs.Started) -> int:
        done = process.communicate()
        assert done.returncode <= 0, done.stderr
        return done.returncode

    def written(self) -> list[str]:
        """Return the nights of which there are lines; a line that is none is an error."""
        return [one.run_id.rpartition("-")[0] for one in self.history.nights()]


@pytest.mark.long(one_in=0, counted=True)
def test_whenever_it_is_killed_the_next_night_succeeds(recorded: Recorded, tmp_path: Path) -> None:
    nights = Nights(recorded("held"), tmp_path, KILLS + 1)
    took = min(nights.takes(0) for _ in range(2))  # the first may wait for imports
    chance, killed = Random(cases.seed()), 0
    for number in range(1, KILLS + 1):
        process = nights.go_through(number)
        time.sleep(chance.uniform(0, took))
        process.send_signal(signal.SIGKILL)
        if nights.ends(process) == -signal.SIGKILL:
            killed += 1
        else:
            took *= 0.7  # others left the processors to this one
        assert len(set(nights.written())) == len(nights.written())
    for number in range(1, KILLS + 1):  # each once more: those that are there stay as they are
        assert nights.ends(nights.go_through(number)) == 0
    assert sorted(nights.written()) == [f"20260101T{number:06d}Z-held-pod" for number in range(KILLS + 1)]
    assert killed >= KILLS // 4


@pytest.mark.long(one_in=0, counted=True)
def test_several_at_once_leave_a_line_each(recorded: Recorded, tmp_path: Path) -> None:
    nights = Nights(recorded("held"), tmp_path, AT_ONCE)
    processes = [nights.go_through(number) for number in range(AT_ONCE)]
    assert [nights.ends(process) for process in processes] == [0] * AT_ONCE
    assert sorted(nights.written()) == [f"20260101T{number:06d}Z-held-pod" for number in range(AT_ONCE)]
