"""A cell, as the containerd and the kubelet of a cluster have it on a worker."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.kubernetes.cell import COMPONENTS, hierarchies
from testbed.kubernetes.worker import Cell
from testbed.providers.netns.sandbox import Sandbox
from tests.paths import ROOT

UNIT = ROOT / "playbooks/roles/cell/templates/cell@.service.j2"

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not os.access("/sys/fs/cgroup", os.W_OK), reason="no cgroups may be made here"
)


@pytest.fixture
def cell() -> Iterator[Cell]:
    box = Sandbox.start("cell.test")
    try:
        box.add_nodes(["n"])
        yield Cell.make(box.node("n"), "/run/cell")
    finally:
        box.stop()


def groups(text: str) -> dict[str, str]:
    """Return the cgroup in each hierarchy, from the text of ``/proc/self/cgroup``."""
    lines = (line.split(":", 2) for line in text.splitlines())
    return {controllers: path for _, controllers, path in lines}


def test_what_belongs_to_a_cell_is_in_its_cgroups(cell: Cell) -> None:
    """Of version 2, where they are delegated by namespace, a runc outside could move nothing in there."""
    mounted = hierarchies(Path("/proc/self/mounts").read_text())
    assert mounted
    controllers = {name for one in mounted for name in one.controllers}
    seen = groups(cell.within.run(["cat", "/proc/self/cgroup"]).stdout)
    controlled = {path for names, path in seen.items() if controllers & {*names.split(",")} or not names}
    assert controlled == {f"/{COMPONENTS}"}


def test_a_command_in_a_cell_competes_with_all_others(cell: Cell) -> None:
    before = groups(Path("/proc/self/cgroup").read_text())
    seen = groups(cell.node.run([*cell.entrance[:2], "--mount", "cat", "/proc/self/cgroup"]).stdout)
    assert seen == before


def test_cgroups_go_with_a_sandbox_that_has_ended_by_itself() -> None:
    box = Sandbox.start("cell.test")
    box.add_nodes(["n"])
    Cell.make(box.node("n"), "/run/cell")
    made = [Path(one.point) / box.cgroup for one in hierarchies(Path("/proc/self/mounts").read_text())]
    assert all(directory.is_dir() for directory in made)
    watch = os.pidfd_open(box.pid)
    signal.pidfd_send_signal(watch, signal.SIGKILL)
    select.select([watch], [], [])
    os.close(watch)
    box.stop()
    assert not any(directory.exists() for directory in made)


def cleared(directory: str) -> list[str]:
    """Return what the unit of a cell runs before it starts one."""
    (line,) = [line for line in UNIT.read_text().splitlines() if line.startswith("ExecStartPre=")]
    return line.partition("=")[2].replace("{{ cells_directory }}/%i", directory).split()


def test_a_cell_has_what_was_its_own_after_a_restart(cell: Cell) -> None:
    cell.within.run(["touch", "/var/lib/kubelet/state", "/run/containerd/socket"])
    cell.node.run(["kill", "-9", str(cell.pid)])
    cell.node.run(cleared(cell.directory))
    again = Cell.make(cell.node, cell.directory)
    assert again.within.run(["ls", "/var/lib/kubelet"]).stdout == "state\n"
    assert again.within.run(["ls", "/run/containerd"]).stdout == ""
