"""``bench --json`` for real: one document on standard output, and ``latest`` leads to what it tells of."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

SHORT = [
    "flows[0].duration=1",
    "flows[1].duration=1",
    "disturbances[0].start=0",
    "disturbances[0].duration=1",
]


@pytest.mark.long(one_in=0)
@pytest.mark.usefixtures("untouched_host")
def test_a_program_is_told_of_every_run(tmp_path: Path) -> None:
    settings = [word for setting in SHORT for word in ("--set", setting)]
    done = subprocess.run(
        [sys.executable, "tasks.py", "bench", "--json", "--retry", "0", "--scale", "0.05",
         "--reports", str(tmp_path), "--scenario", "kubernetes", "--scenario", "kubernetes", *settings],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    told = json.loads(done.stdout)
    verdicts = [run["summary"]["verdict"] for run in told["runs"]]
    assert len(verdicts) == 2
    # Whatever they are: other tests have the processors, too.
    assert done.returncode == (1 if "violated" in verdicts else 3 if "invalid" in verdicts else 0)
    assert "kubernetes: traffic for 1 s" in done.stderr
    for run in told["runs"]:
        assert json.loads(Path(run["paths"]["summary"]).read_text()) == run["summary"]
        assert all(Path(path).exists() for path in run["paths"].values())
    assert str((tmp_path / "latest").resolve()) == told["runs"][-1]["paths"]["recording"]
