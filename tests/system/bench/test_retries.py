"""``bench`` where a promise is more than any machine carries: what it foresees, and what it runs then."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.paths import ROOT

pytestmark = pytest.mark.usefixtures("untouched_host")


def bench(
    reports: Path, guarantee: str, *words: str
) -> tuple[dict[str, Any], subprocess.CompletedProcess[str]]:
    done = subprocess.run(
        [sys.executable, "tasks.py", "bench", "kubernetes", "--json", "--reports", str(reports),
         "--duration", "2", "--set", f"pods.A-1.guarantee={guarantee}", *words],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr
    return json.loads(done.stdout), done


def foreseen(run: dict[str, Any]) -> dict[float, bool]:
    return {one["scale"]: one["can_tell"] for one in run["summary"]["calibration"]["foreseen"]}


@pytest.mark.long(one_in=0)
def test_a_machine_that_can_tell_at_no_scale_says_so_before_the_traffic(tmp_path: Path) -> None:
    told, done = bench(tmp_path, "1T")
    (run,) = told["runs"]
    assert foreseen(run) == {1.0: False, 0.5: False, 0.2: False, 0.1: False}
    assert done.returncode == 3
    lines = done.stderr.splitlines()
    cannot = next(at for at, line in enumerate(lines) if "this machine cannot tell, not at a tenth" in line)
    assert cannot < lines.index("kubernetes: traffic for 2 s")
    assert "kubernetes: this machine cannot tell at any of the scales 1, 0.5, 0.2, 0.1" in lines
    assert lines[-1].startswith("next: ./invokew ")


@pytest.mark.long(one_in=0)
def test_a_smaller_run_is_a_recording_of_its_own(tmp_path: Path) -> None:
    """Half of 150 Gbit/s is foreseen by no test: it is run, or it is not."""
    told, done = bench(tmp_path, "150G", "--retry", "1")
    first, *others = told["runs"]
    assert first["scale"] == 1
    assert not foreseen(first)[1.0]
    assert first["summary"]["verdict"] == "invalid"
    assert done.returncode == 3  # whatever became of the smaller
    assert "retry_of" not in first["summary"]
    for run in others:
        assert run["scale"] < 1
        assert run["summary"]["retry_of"] == first["summary"]["run_id"]
        assert run["summary"]["title"].endswith(" of every rate")
        page = Path(run["paths"]["report"]).read_text(encoding="utf-8")
        assert run["summary"]["title"] in page
        assert f"It follows <code>{first['summary']['run_id']}</code>" in page


@pytest.mark.long(one_in=0)
def test_scale_auto_begins_where_the_calibration_says(tmp_path: Path) -> None:
    told, done = bench(tmp_path, "1T", "--scale", "auto", "--retry", "0")
    (run,) = told["runs"]
    assert run["scale"] == 0.1
    assert run["summary"]["title"].endswith("at a tenth of every rate")
    assert "kubernetes: --scale 0.1" in done.stderr.splitlines()
