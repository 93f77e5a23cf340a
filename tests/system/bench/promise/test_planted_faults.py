"""The promise kit finds faults that were planted in a network, and none in one without."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

REFERENCE = [Path(directory) / "bridge" for directory in ("/usr/lib/cni", "/opt/cni/bin")]
NETWORKS = Path(__file__).parent / "networks"
# By network, a check that has to find what is wrong with it.
FAULTS = {
    "too-little": "rate-100m",
    "burst": "first-second",
    "wrong-side": "rate-100m",
    "udp": "udp",
    "forgets": "second-pod",
    "neighbours-class": "own-rate",
}
# All that one run answers. It is shorter than for a report: these faults are not small.
CHECKS = ("rate-100m", "first-second", "udp", "same-node", "own-rate", "second-pod")
SHORTER = ["measurement.warm_up=1.5", *(f"flows[{number}].duration=3" for number in range(7))]

pytestmark = [
    pytest.mark.skipif(
        not any(plugin.exists() for plugin in REFERENCE),
        reason="the reference plugins are not installed (Debian: containernetworking-plugins)",
    ),
    pytest.mark.long(one_in=0),
    pytest.mark.alone,
]


def states(network: str, reports: Path) -> tuple[int, dict[str, str]]:
    """Return the exit status, and the state of each check."""
    options = [word for check in CHECKS for word in ("--check", check)]
    options += [word for setting in SHORTER for word in ("--set", setting)]
    done = subprocess.run(
        [sys.executable, "tasks.py", "promise", "--network", network, "--reports", str(reports), *options],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1, 3), done.stdout + done.stderr
    (directory,) = reports.glob("*-promise")
    results = json.loads((directory / "promise.json").read_text())["results"]
    return done.returncode, {result["name"]: result["state"] for result in results}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str, tmp_path: Path) -> None:
    status, found = states(str(NETWORKS / f"{fault}.yaml"), tmp_path)
    if found[FAULTS[fault]] == "invalid":
        pytest.skip("the machine was the limit")
    assert found[FAULTS[fault]] == "violated"
    assert status == 1
    if fault == "udp":  # and what is not at fault is not blamed
        assert "violated" not in {found["rate-100m"], found["same-node"], found["second-pod"]}


@pytest.mark.parametrize("network", [str(NETWORKS / "sound.yaml"), "node"])
def test_none_is_found_where_none_was_planted(network: str, tmp_path: Path) -> None:
    status, found = states(network, tmp_path)
    assert "violated" not in found.values()
    assert set(found) == set(CHECKS)
    assert status == (3 if "invalid" in found.values() else 0)
