"""A small matrix for real, with the reference plugins as one of its enforcements."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

REFERENCE = [Path(directory) / "bandwidth" for directory in ("/usr/lib/cni", "/opt/cni/bin")]


@pytest.mark.alone
@pytest.mark.long(one_in=0)
@pytest.mark.skipif(
    not any(plugin.exists() for plugin in REFERENCE),
    reason="the reference plugins are not installed (Debian: containernetworking-plugins)",
)
def test_enforcements_side_by_side(tmp_path: Path) -> None:
    settings = ["flows[0].duration=2", "flows[1].duration=2", "disturbances=[]"]
    done = subprocess.run(
        [sys.executable, "tasks.py", "matrix", "--reports", str(tmp_path), "--scale", "0.05",
         "--scenario", "kubernetes", "--enforcement", "none", "--enforcement", "bandwidth",
         "--enforcement", "node", *(word for setting in settings for word in ("--set", setting))],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    (directory,) = tmp_path.iterdir()
    assert directory.name.endswith("-matrix")
    index = json.loads((directory / "matrix.json").read_text())
    recordings = {cell["enforcement"]: cell["recording"] for cell in index["cells"]}
    assert recordings["node"] is None  # the scenario's links have no rate to share out
    assert (directory / "matrix.html").stat().st_size > 1000

    read = [directory / name / "summary.json" for name in recordings.values() if name]
    verdicts = {json.loads(file.read_text())["verdict"] for file in read}
    # A machine that is busy with other tests may make a cell invalid, which must be said.
    assert done.returncode == (3 if "invalid" in verdicts else 0), done.stdout + done.stderr

    def means(enforcement: str) -> list[float]:
        summary = json.loads((directory / recordings[enforcement] / "summary.json").read_text())
        return [flow["phases"]["quiet"]["mean_bps"] for flow in summary["flows"]]

    # The limits of 50 and 150 Mbit/s are frames. Bursts go on after the warm-up, and what a pause of the
    # machine kept back comes in these one and a half seconds too; without limits both get over twice as much.
    assert means("bandwidth") == pytest.approx([50e6 * 1398 / 1464, 150e6 * 1398 / 1464], rel=0.15)
    # Without a limit TCP shares as it likes; both together are far above what limits would leave them.
    assert sum(means("none")) > 2 * 200e6
