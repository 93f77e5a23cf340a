"""A disk that is full: what could not be written is named, and nothing half-made passes for whole."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.system.bench.test_interrupts import SHORT
from tests.unit.bench.builders import DATA

HELD = DATA / "held"
# A disk of its own, seen by nobody else, and what is on it in the end.
SCRIPT = """
mount -t tmpfs -o size="$1" tmpfs "$2" && disk=$2 && shift 2 || exit 99
[ -z "$FIRST" ] || cp -r "$FIRST" "$disk" || exit 98
"$@"
status=$?
find "$disk" -type f -printf 'left: %P\\n'
exit $status
"""


def on_disk(size: str, disk: Path, *arguments: str, first: str = "") -> subprocess.CompletedProcess[str]:
    """Run a task with so much room; ``first`` is a directory that is copied there before."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return subprocess.run(
        ["unshare", *user, "--mount", "sh", "-c", SCRIPT, "sh", size, str(disk),
         sys.executable, "tasks.py", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "FIRST": first},
    )  # fmt: skip


@pytest.mark.long(one_in=4)
@pytest.mark.parametrize("size", ["4k", "12k", "40k", "120k"])
def test_a_run_that_finds_no_room_fails_and_is_never_whole(size: str, tmp_path: Path) -> None:
    done = on_disk(
        size, tmp_path, "bench", "--scenario", "kubernetes", "--scale", "0.05", "--retry", "0", *SHORT,
        "--set", "disturbances[0].rate=1G", "--reports", str(tmp_path),
    )  # fmt: skip
    assert done.returncode == 4, done.stdout + done.stderr
    assert "No space left on device: '" + str(tmp_path) in done.stderr, done.stderr
    left = [line for line in done.stdout.splitlines() if line.startswith("left: ")]
    assert all(".unfinished/" in line for line in left), left
    assert not any(line.endswith(("/raw/run.json", ".part")) or "/." in line for line in left), left
    assert "Traceback" not in done.stderr


@pytest.mark.long(one_in=0)
def test_figures_that_find_no_room_leave_what_was_there(tmp_path: Path) -> None:
    held, disk = tmp_path / "held", tmp_path / "disk"
    shutil.copytree(HELD, held)
    disk.mkdir()
    done = on_disk("320k", disk, "figures", str(disk / "held"), first=str(held))
    assert done.returncode == 4, done.stdout + done.stderr
    assert f"No space left on device: '{disk}/held/" in done.stderr
    left = {
        line.removeprefix("left: held/") for line in done.stdout.splitlines() if line.startswith("left: ")
    }
    assert "summary.json" not in left
    assert not any(Path(name).name.startswith(".") for name in left)
