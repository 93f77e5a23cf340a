"""What a user types, from the first command to the verdict."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.kubernetes import binaries
from testbed.providers.netns import cgroups
from testbed.providers.netns.sandbox import Sandbox
from tests.e2e.conftest import ROOT, host_state, invoke, until

NAME = "kubernetes-e2e"
STARTER = """
from pathlib import Path
from testbed.scenario import load
from testbed.testbed import assemble
testbed = assemble(load(Path("scenarios/kubernetes.yaml"), scale=0.1), "netns", "kubernetes")
testbed.up()
print(testbed.provider.sandbox.pid, flush=True)
input()
"""


@pytest.mark.usefixtures("untouched_host")
def test_a_testbed_that_lasts_is_reached_by_the_users_own_kubectl(tmp_path: Path) -> None:
    up = invoke("up", "--orchestrator", "kubernetes", "--scenario", "kubernetes", "--name", NAME)
    try:
        assert up.returncode == 0, up.stdout + up.stderr
        told = invoke("kubeconfig", "a", "--name", NAME)
        assert told.returncode == 0, told.stderr
        (tmp_path / "a.conf").write_text(told.stdout)
        kubectl = [str(binaries.find().path("kubectl")), f"--kubeconfig={tmp_path / 'a.conf'}"]
        listed = subprocess.run([*kubectl, "get", "pods", "--output=name"], capture_output=True, text=True)
        assert listed.stdout.split() == ["pod/a-1", "pod/a-2", "pod/a-3", "pod/a-4"], listed.stderr
        ran = invoke("exec", "A-1", "--name", NAME, "--", "sh", "-c", "ip -br address show eth0; exit 7")
        assert ran.returncode == 7
        assert "172.16.1." in ran.stdout
        nowhere = invoke("kubeconfig", "z", "--name", NAME)
        assert nowhere.returncode == 2
        assert "no Kubernetes cluster 'z' (clusters: a)" in nowhere.stderr
    finally:
        down = invoke("down", "--name", NAME)
    assert down.returncode == 0, down.stderr


@pytest.mark.usefixtures("untouched_host")
def test_what_a_killed_harness_leaves_ends_with_it_or_is_removed_by_the_next() -> None:
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())
    mine = cgroups.name_of(pid)
    starter.send_signal(signal.SIGKILL)
    starter.communicate()
    until(lambda: not Path(f"/proc/{pid}").exists(), 10)
    assert any(mine in name for name in host_state()["cgroups"])
    Sandbox.start("next.test").stop()


def test_without_programs_it_says_how_to_get_them_and_starts_nothing(tmp_path: Path) -> None:
    done = invoke("bench", "--orchestrator", "kubernetes", CONCORDE_CACHE=str(tmp_path))
    assert done.returncode == 2
    assert "run ./invokew kubernetes.get" in done.stderr
    assert "nodes and underlay" not in done.stdout
