"""What system tests share: real sandboxes, ended with the test, and a look at what the host has."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from testbed.providers.netns.sandbox import Sandbox, SandboxError
from tests.leftovers import added, network_state
from tests.waiting import PATIENCE


@pytest.fixture(scope="session", autouse=True)
def _sandboxes_are_possible() -> None:
    """Skip what needs namespaces where the kernel or its settings forbid them; ``doctor`` says why."""
    try:
        Sandbox.start("tests.probe").stop()
    except SandboxError as error:
        pytest.skip(str(error))


@pytest.fixture
def untouched_host() -> Iterator[None]:
    """See to it that a test leaves no link, named namespace or mount on the host."""
    before = network_state()
    yield
    assert added(before, network_state()) == {}


def sandbox_of(process: int) -> Sandbox:
    """Return the sandbox that a process has started: others come and go on this machine meanwhile."""
    parents, mine = _parents(), {process}
    while more := {child for child, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return next(box for box in Sandbox.all() if box.pid in mine)


def _parents() -> dict[int, int]:
    """Return the parent of each process there is."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            found[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    return found


def processes_in(pid_namespace: str) -> list[int]:
    """Return the processes in a pid namespace, given as ``/proc/<pid>/ns/pid`` shows it."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(entry / "ns" / "pid") == pid_namespace:  # noqa: PTH115 (not a path)
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def all_gone(pid_namespace: str, seconds: float = PATIENCE) -> bool:
    """Wait until a pid namespace has no process left; those that ended may still be waiting to be reaped."""
    deadline = time.monotonic() + seconds
    while found := processes_in(pid_namespace):
        with suppress(ProcessLookupError):
            descriptor = os.pidfd_open(found[0])
            ended, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
            os.close(descriptor)
            if not ended:
                return False
    return True


def pid_namespace(pid: int) -> str:
    return os.readlink(f"/proc/{pid}/ns/pid")  # noqa: PTH115 (not a path)
