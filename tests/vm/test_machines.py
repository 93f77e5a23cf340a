"""The life of machines: made, logged in to, measured on, switched off and on, and gone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.vm.conftest import NAME_OF_TEST, invoke, judged, skip_if_invalid, virsh

pytestmark = pytest.mark.usefixtures("nothing_left")

# What emulated machines can carry beside each other on two processors; samples of a second, which even out
# when they were late.
CARRIED = (
    "machine={cpus: 1, memory: 1024}",
    "measurement={interval: 1, warm_up: 2, repetitions: 1}",
    "flows[0].duration=30",
    "flows[1].duration=30",
    "disturbances[0].rate=2G",  # as all rates, before they are scaled
    "disturbances[0].start=10",
    "disturbances[0].duration=10",
)
SCALE = 0.005


def test_machines_from_the_first_up_to_destroy(scenario_file: Callable[..., Path], tmp_path: Path) -> None:
    there = ("--provider", "vagrant", "--scenario", str(scenario_file("kubernetes", *CARRIED, scale=SCALE)))
    try:
        up = invoke("up", *there)
        assert up.returncode == 0, up.stdout + up.stderr
        assert f"machines of scenario {NAME_OF_TEST} are up" in up.stdout
        names = {name for name in virsh("list", "--name").split() if NAME_OF_TEST in name}
        assert names == {
            f"concorde-{NAME_OF_TEST}-{node}" for node in ("master-01", "worker-01", "worker-02")
        }

        inside = invoke(
            "ssh", "worker-01", *there,
            "--", "sh", "-c", "hostname; ip -brief -4 address show eth1; stat -fc %T /sys/fs/cgroup",
        )  # fmt: skip
        assert inside.stdout.split() == ["worker-01", "eth1", "UP", "192.168.158.12/24", "cgroup2fs"]

        said = judged(tmp_path / "reports", *there)
        assert said["verdict"] != "violated", said["reasons"]

        off = invoke("down", *there)
        assert off.returncode == 0, off.stdout + off.stderr
        assert not any(NAME_OF_TEST in name for name in virsh("list", "--name").split())
    finally:
        gone = invoke("down", *there, "--destroy")
    assert gone.returncode == 0, gone.stdout + gone.stderr
    skip_if_invalid(said)
