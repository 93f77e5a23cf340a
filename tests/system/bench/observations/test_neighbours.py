"""Runs on one machine know of each other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.observations import neighbours
from tests.paths import ROOT

STARTER = """
import sys
from testbed.providers.netns.sandbox import Sandbox
box = Sandbox.start(sys.argv[1])
print(box.pid, flush=True)
sys.stdin.read()
box.stop()
"""
LOOK = "from bench.observations import neighbours; print(neighbours.look().hidden)"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes others")


@contextmanager
def sandbox_of_another(name: str, *prefix: str) -> Iterator[int]:
    """Start a sandbox from another process, as root or somebody else; yields its first process."""
    with subprocess.Popen(
        [*prefix, sys.executable, "-c", STARTER, name],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as other:  # fmt: skip
        assert other.stdout is not None
        line = other.stdout.readline()
        if not line.strip():
            pytest.skip("no sandbox for this user")
        yield int(line)
        other.communicate()


def test_a_run_is_seen_and_a_testbed_that_is_up_is_not() -> None:
    with sandbox_of_another("a.run") as run, sandbox_of_another("idle") as idle:
        seen = neighbours.look().runs
    assert f"process {run} of user {os.geteuid()}" in seen
    assert not any(f"process {idle} " in each for each in seen)
    assert f"process {run} of user {os.geteuid()}" not in neighbours.look().runs


@needs_root
def test_a_run_of_another_user_is_seen() -> None:
    with sandbox_of_another("a.run", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups") as run:
        assert f"process {run} of user 65534" in neighbours.look().runs


@needs_root
def test_what_proc_hides_is_said() -> None:
    look = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, "-c", LOOK]
    script = 'mount -t proc -o hidepid=2 proc /proc && exec "$@"'
    hiding = ["unshare", "--mount", "--pid", "--fork", "sh", "-c", script, "sh"]
    for prefix, hidden in (([], "False"), (hiding, "True")):
        done = subprocess.run([*prefix, *look], cwd=ROOT, capture_output=True, text=True, check=True)
        assert done.stdout == f"{hidden}\n"


def bench(reports: Path) -> subprocess.Popen[str]:
    fields = [
        "flows[0].duration=4",
        "flows[1].duration=4",
        "disturbances[0].start=1",
        "disturbances[0].duration=1",
    ]
    return subprocess.Popen(
        [sys.executable, "-u", "tasks.py", "bench", "--scenario", "kubernetes", "--scale", "0.05",
         *(word for field in [*fields, "disturbances[0].rate=1G"] for word in ("--set", field)),
         "--retry", "0", "--reports", str(reports)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


@pytest.mark.long(one_in=0)
def test_two_runs_at_once_both_say_so(tmp_path: Path) -> None:
    runs = [bench(tmp_path / name) for name in ("one", "other")]
    words = [run.communicate(timeout=120)[0] for run in runs]
    for run, said, name in zip(runs, words, ("one", "other"), strict=True):
        assert run.returncode in (0, 1, 3), said  # other tests have the processors too
        summary = tmp_path / name / "latest" / "summary.json"
        notes = json.loads(summary.read_text())["notes"]
        assert any(note.startswith("another run went on on this machine") for note in notes)
        assert "  note: another run went on on this machine meanwhile: process " in said
