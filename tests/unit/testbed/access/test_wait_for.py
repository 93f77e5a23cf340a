"""Waiting for a component by what a command says, as a program of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from testbed.access import wait_for
from tests.waiting import PATIENCE


def wait(command: list[str], ended: Path, seconds: float = PATIENCE) -> subprocess.CompletedProcess[str]:
    wishes = {"command": command, "ended": str(ended), "seconds": seconds}
    program = [sys.executable, "-I", "-S", str(wait_for.__file__)]
    return subprocess.run(
        program, input=json.dumps(wishes), capture_output=True, encoding="utf-8", timeout=2 * PATIENCE
    )


def test_a_command_is_tried_until_it_says_something(tmp_path: Path) -> None:
    count = tmp_path / "count"
    script = f'echo >>{count}; [ "$(wc -l <{count})" -ge 3 ] && echo ready'
    assert wait(["sh", "-c", script], tmp_path / "ended").returncode == 0
    assert len(count.read_text().splitlines()) == 3


def test_one_that_only_complains_is_waited_for_until_the_time_is_over(tmp_path: Path) -> None:
    done = wait(["sh", "-c", "echo nobody there >&2; exit 1"], tmp_path / "ended", seconds=0)
    assert (done.returncode, done.stderr) == (1, "sh -c echo nobody there >&2; exit 1: nobody there\n")


def test_a_component_that_has_ended_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "ended").touch()
    done = wait(["true"], tmp_path / "ended", seconds=PATIENCE)
    assert (done.returncode, done.stderr) == (1, "it has ended\n")
