"""Flows of one pod take turns where the kernel has fq_codel, as Debian's has: shown on one machine."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from testbed.providers.vagrant import requirements
from testbed.providers.vagrant.machines import remove_unused_images
from testbed.supplies.box import NAME
from tests.paths import ROOT
from tests.vm.conftest import NAME_OF_TEST, made

PROGRAM = Path(__file__).with_name("leaves.py")
MACHINE = "alone"
DESCRIPTION = f"""
name: {NAME_OF_TEST}
underlay: {{cidr: 192.168.158.0/24}}
machine: {{cpus: 1, memory: 1024}}
nodes: {{{MACHINE}: }}
"""
BUCKET = "tbf"
FAIR = "fq_codel"
SECONDS = 1800.0
Run = Callable[..., str]


@pytest.fixture(scope="module")
def on_machine(box: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Return what runs a command as root on a machine that has the plugin, and returns what it printed."""
    before, directory = made(), tmp_path_factory.mktemp("machine")
    scenario, config, archive = directory / "alone.yaml", directory / "ssh", directory / "plugin.tar"
    scenario.write_text(DESCRIPTION)
    environment = {
        **os.environ,
        "VAGRANT_DOTFILE_PATH": str(directory / "vagrant"),
        "VAGRANT_DEFAULT_PROVIDER": requirements.LIBVIRT,
        "CONCORDE_SCENARIO": str(scenario),
        **({} if requirements.kvm_works() else requirements.EMULATED),
    }

    def run(*command: str, stdin: bytes = b"") -> str:
        done = subprocess.run(
            command, input=stdin, capture_output=True, cwd=ROOT, env=environment, timeout=SECONDS, check=False
        )
        assert done.returncode == 0, (done.stdout + done.stderr).decode()
        return done.stdout.decode()

    def as_root(command: str, stdin: bytes = b"") -> str:
        return run("ssh", "-F", str(config), MACHINE, f"sudo {command}", stdin=stdin)

    run(sys.executable, "plugin/build.py", "--output", str(directory / "plugin"), "--tar", str(archive))
    try:
        run("vagrant", "up", "--no-provision")
        config.write_text(run("vagrant", "ssh-config"))
        as_root("tar -x -C /opt --no-same-owner", stdin=archive.read_bytes())
        yield as_root
    finally:
        run("vagrant", "destroy", "--force")
        remove_unused_images(requirements.uri(), NAME)
    assert made() == before


def part(rounds: list[dict[str, int]]) -> float:
    """What arrived by TCP of all that arrived, in the middle one of some rounds."""
    if not rounds:
        pytest.skip("this machine is too busy to flood, so it cannot tell")
    return median(one["tcp"] / (one["tcp"] + one["udp"]) for one in rounds)


@pytest.mark.parametrize(
    ("pod", "keys", "kinds"),
    [("A-1", {}, [FAIR]), ("A-2", {}, [BUCKET, FAIR]), ("A-1", {"segment": True}, [BUCKET, FAIR])],
    ids=["promise", "best effort", "frames"],
)
def test_a_flood_leaves_the_pods_other_flows_their_parts_where_the_kernel_can(
    on_machine: Run, pod: str, keys: dict[str, bool], kinds: list[str]
) -> None:
    command = shlex.join(["python3", "-", "/opt/concorde", pod, json.dumps(keys)])
    said: dict[str, Any] = json.loads(on_machine(command, stdin=PROGRAM.read_bytes()))
    print(pod, keys, said["turns"], said["fifo"])  # noqa: T201 - shown when it fails, or with -s
    assert (said["codes"], said["kinds"]) == ([None, None], kinds)
    assert said["metrics"] == [said["dropped"]] != [0]
    # As a version before this made it: named, and replaced while the class stays.
    assert "lacks its queue, " in said["check"]
    assert said["reconcile"] == [f"repaired: {said['check']}"]
    assert (said["counted on"], said["kinds after"], said["check after"]) == (True, kinds, {})
    assert said["again"] == "nothing to repair\n"
    assert part(said["turns"]) > 0.4, said
    assert part(said["fifo"]) < 0.2, said
