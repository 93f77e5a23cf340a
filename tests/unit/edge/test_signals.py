"""Programs hear that they are to end, however early they are told."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from testbed.resources import EDGE
from testbed.supplies import addresses, services

API = "--api=http://127.0.0.1:9"  # where nobody is
PROGRAMS = {
    "services-proxy": ["--cluster=a", "--services=10.96.0.0/16", API],
    "hints": ["--services=10.96.0.0/16", API],
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_who_is_told_to_end_while_python_is_being_started_ends_by_itself(
    program: str, tmp_path: Path
) -> None:
    assert "--block-signal=TERM" in services.START.entrypoint
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # here, and in what is started
    try:
        with (tmp_path / "log").open("wb") as log:
            started = subprocess.Popen([*addresses.PYTHON, EDGE, program, *PROGRAMS[program]], stderr=log)
        started.terminate()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert started.wait() == 0, (tmp_path / "log").read_text()
