"""A study in one file from outside the project, for real: interrupted, gone on with, and drawn again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.waiting import PATIENCE

SHORT = ["flows[0].duration=1", "flows[1].duration=1", "disturbances=[]"]


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-u", "tasks.py", *arguments],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "CONCORDE_EXTENSIONS": "docs/examples/length_study.py"},
    )  # fmt: skip


@pytest.mark.long(one_in=0)
@pytest.mark.usefixtures("untouched_host")
def test_a_study_from_outside_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    wanted = ["settings.study.length.mtus=[9000]", *SHORT]
    overrides = [word for setting in wanted for word in ("--set", setting)]
    study = start("study", "length", "--scale", "0.05", "--reports", str(tmp_path), *overrides)
    assert study.stdout is not None
    first = study.stdout.readline()
    assert any(line.startswith("MTU 9000: calibration") for line in study.stdout)
    study.send_signal(signal.SIGINT)
    out, words = study.communicate(timeout=PATIENCE)
    assert study.returncode == 130, out + words
    assert first == "MTU 9000: case 1 of 1, about 5 s left\n"
    (directory,) = tmp_path.iterdir()
    assert f"0 of 1 cases are done; to go on: ./invokew study length --resume {directory}" in out
    index = {"schema_version": 1, "rows": [{"case": "9000", "recording": None, "reason": None}]}
    assert json.loads((directory / "length.json").read_text()) == index
    (left,) = directory.glob("*.unfinished")

    again = start("study", "length", "--resume", str(directory))
    out, words = again.communicate(timeout=PATIENCE)
    assert again.returncode in (0, 3), out + words  # other tests have the processors, too
    (finished,) = tmp_path.iterdir()
    assert finished.name == directory.name.removesuffix(".unfinished")
    (row,) = json.loads((finished / "length.json").read_text())["rows"]
    assert row["recording"] == left.name.removesuffix(".unfinished")
    assert (finished / row["recording"] / "report.html").stat().st_size > 1000
    # A pod's MTU is the links' less 50; its frame has 14 more than that, and its payload 52 less.
    assert f"{(9000 - 50 - 52) / (9000 - 50 + 14):.1%}".replace("%", " %") in out
