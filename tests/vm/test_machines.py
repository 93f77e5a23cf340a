"""The life of machines: made, logged in to, measured on, switched off and on, and gone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.vm.conftest import NAME_OF_TEST, invoke, virsh

pytestmark = pytest.mark.usefixtures("nothing_left")


def test_machines_from_the_first_up_to_destroy(small: Callable[..., Path], tmp_path: Path) -> None:
    scenario = small("kubernetes")
    try:
        said = invoke("up", "--provider", "vagrant", "--scenario", str(scenario))
        assert said.returncode == 0, said.stdout + said.stderr
        assert f"machines of scenario {NAME_OF_TEST} are up" in said.stdout
        names = {name for name in virsh("list", "--name").split() if NAME_OF_TEST in name}
        assert names == {
            f"concorde-{NAME_OF_TEST}-{node}" for node in ("master-01", "worker-01", "worker-02")
        }

        inside = invoke(
            "ssh", "worker-01", "--provider", "vagrant", "--scenario", str(scenario),
            "--", "sh", "-c", "hostname; ip -brief -4 address show eth1; stat -fc %T /sys/fs/cgroup",
        )  # fmt: skip
        assert inside.stdout.split() == ["worker-01", "eth1", "UP", "192.168.158.12/24", "cgroup2fs"]

        run = invoke(
            "bench", "--provider", "vagrant", "--scenario", str(scenario), "--reports", str(tmp_path)
        )
        (recording,) = tmp_path.glob(f"*-{NAME_OF_TEST}-pod*")
        judged = json.loads((recording / "summary.json").read_text())
        assert judged["verdict"] == "held", run.stdout + run.stderr

        off = invoke("down", "--provider", "vagrant", "--scenario", str(scenario))
        assert off.returncode == 0, off.stdout + off.stderr
        assert not any(NAME_OF_TEST in name for name in virsh("list", "--name").split())
    finally:
        gone = invoke("down", "--provider", "vagrant", "--scenario", str(scenario), "--destroy")
    assert gone.returncode == 0, gone.stdout + gone.stderr
