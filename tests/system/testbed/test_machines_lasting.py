"""Machines as a testbed that stays up, through the command line; Vagrant is a script, sshd is real."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.access.local import ENVIRONMENT
from testbed.scenario import load
from tests.paths import ROOT
from tests.system.testbed import machines
from tests.system.testbed.machines import USER, Machines

# A Vagrant whose machines run from the first ``up`` to ``halt``.
VAGRANT = """#!/bin/sh
cd "$(dirname "$0")" || exit
echo "$1" >>calls
case $1 in
    status)
        [ -e running ] && state=running || state=poweroff
        while read -r node; do
            echo "1,$node,provider-name,virtualbox"
            echo "1,$node,state,$state"
        done <nodes ;;
    up) touch running ;;
    ssh-config) cat ssh_config ;;
    halt) rm running ;;
esac
"""
TCPDUMP = """#!/bin/sh
echo "$(id -un) in $(readlink /proc/self/ns/net):" "$@"
"""
# The command line, but with the state of machines elsewhere than in this checkout.
START = """
import pathlib, runpy, sys
from testbed import resources
resources.MACHINES = pathlib.Path(sys.argv.pop(1))
sys.argv[0] = "tasks.py"
runpy.run_path("tasks.py", run_name="__main__")
"""
NODE = """Host {name}
  HostName {address}
  User {user}
  IdentityFile {key}
"""


class Fake:
    """Machines, and a Vagrant that looks after them."""

    def __init__(self, there: Machines, directory: Path) -> None:
        self.there = there
        self.directory = directory
        self.states = directory / "states"
        (directory / "vagrant").write_text(VAGRANT)
        (directory / "vagrant").chmod(0o755)
        (directory / "nodes").write_text("".join(f"{name}\n" for name in there.nodes))
        told = (
            NODE.format(name=name, address=there.address(name), user=USER, key=there.key)
            for name in there.nodes
        )
        (directory / "ssh_config").write_text("".join(told))

    def invoke(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command where the machines are reached."""
        environment = {
            **os.environ,
            "PATH": f"{self.directory}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "VAGRANT_DEFAULT_PROVIDER": "virtualbox",
            "CONCORDE_BOX": "another",
        }
        return subprocess.run(
            [*self.there.prefix, sys.executable, "-c", START, str(self.states), *arguments],
            cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip

    def calls(self) -> list[str]:
        """What Vagrant was asked to do."""
        return (self.directory / "calls").read_text().split()


@pytest.fixture(scope="module")
def fake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fake]:
    machines.require()
    directory = tmp_path_factory.mktemp("machines")
    with Machines(load(ROOT / "scenarios" / "kubernetes.yaml"), directory).lent() as there:
        yield Fake(there, directory)


@pytest.mark.long(one_in=0)
def test_from_up_to_down(fake: Fake) -> None:
    before = fake.there.state()
    up = fake.invoke("up", "--provider", "vagrant", "--scenario", "kubernetes")
    assert up.returncode == 0, up.stdout + up.stderr
    assert f"inventory: {fake.states}/kubernetes/inventory.yaml" in up.stdout
    listed = fake.invoke("status")
    assert "kubernetes: scenario kubernetes" in listed.stdout
    assert fake.there.address("worker-02") in listed.stdout

    ran = fake.invoke(
        "exec", "worker-01", "--name", "kubernetes", "--", "sh", "-c", "id -un; hostname; exit 7"
    )
    assert ran.returncode == 7, ran.stderr
    assert ran.stdout.split()[0] == "root"
    logged_in = fake.invoke(
        "ssh", "worker-01", "--provider", "vagrant", "--scenario", "kubernetes", "--", "id", "-un"
    )
    assert logged_in.stdout.split() == [USER], logged_in.stderr
    assert fake.there.state() == before

    off = fake.invoke("down", "--name", "kubernetes")
    assert off.returncode == 0, off.stderr
    assert "machines of scenario kubernetes are off" in off.stdout
    ended = fake.invoke("down", "--provider", "vagrant", "--scenario", "kubernetes", "--destroy")
    assert ended.returncode == 0, ended.stderr
    assert fake.calls() == ["status", "up", "ssh-config", "halt", "destroy"]
    assert list(fake.states.iterdir()) == []


@pytest.mark.long(one_in=0)
def test_capture_is_the_machines_own(fake: Fake) -> None:
    inventory = f"ssh:{fake.there.inventory(USER)}"
    node = fake.there.nodes["worker-01"]
    node.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/usr/local/sbin"])
    node.run(["tee", "/usr/local/sbin/tcpdump"], stdin=TCPDUMP)
    node.run(["chmod", "755", "/usr/local/sbin/tcpdump"])
    shown = fake.invoke(
        "capture", "worker-01", "--provider", inventory, "--interface", "eth1", "--", "tcp port 9"
    )
    assert shown.returncode == 0, shown.stderr
    network = node.run(["readlink", "/proc/self/ns/net"]).stdout.strip()
    assert shown.stdout == f"root in {network}: -n -l -i eth1 tcp port 9\n"
    if shutil.which("tcpdump", path=ENVIRONMENT["PATH"]) is None:
        missing = fake.invoke("capture", "worker-02", "--provider", inventory)
        assert missing.returncode == 2
        assert "tcpdump is not installed on worker-02: apt-get install tcpdump" in missing.stderr


@pytest.mark.long(one_in=0)
def test_machines_that_exist_are_entered_and_cleared(fake: Fake) -> None:
    inventory = f"ssh:{fake.there.inventory(USER)}"
    ran = fake.invoke("exec", "worker-02", "--provider", inventory, "--", "id", "-un")
    assert ran.stdout.split() == ["root"], ran.stderr
    cleared = fake.invoke("down", "--provider", inventory)
    assert cleared.returncode == 0, cleared.stderr
    assert "nothing of a testbed is left on master-01, worker-01, worker-02" in cleared.stdout
