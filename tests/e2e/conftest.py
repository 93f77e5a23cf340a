"""What tests of real Kubernetes share: the overlapped pair, up once, and what the host must be like after."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from testbed import plugin
from testbed.kubernetes import requirements
from testbed.nodes import Node
from testbed.providers.netns import cgroups
from testbed.providers.netns.sandbox import Sandbox
from testbed.scenario import Scenario, load
from testbed.testbed import Testbed, assemble

ROOT = Path(__file__).parents[2]
SCENARIOS = ROOT / "scenarios"
# What a kubelet would like to have otherwise.
SETTINGS = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops")
PROGRAMS = ("etcd", "kube-", "kubelet", "containerd", "catatonit", "flanneld")
# What they have at fixed places; a cell's is its own.
PLACES = (
    "/var/lib/kubelet",
    "/var/lib/cni",
    "/var/log/pods",
    "/run/containerd",
    "/run/kubernetes",
    "/run/flannel",
)
# For what comes to be: tests wait, and benchmarks measure. How fast a machine is, is not what is tested.
PATIENCE_SECONDS = 180


@pytest.fixture(scope="session", autouse=True)
def _kubernetes_is_possible() -> None:
    if found := list(requirements.missing()):
        pytest.skip("; ".join(found))


def host_state() -> dict[str, set[str]]:
    """Return what a testbed must not add anything to."""

    def shown(*command: str) -> list[dict[str, Any]]:
        done = subprocess.run(["ip", "-j", *command], capture_output=True, check=True)
        found: list[dict[str, Any]] = json.loads(done.stdout or b"[]")
        return found

    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    points = [mount[1] for mount in mounts if mount[2] in ("cgroup", "cgroup2")]
    return {
        "links": {link["ifname"] for link in shown("link")},
        "namespaces": {item["name"] for item in shown("netns")},
        "mounts": {" ".join(mount) for mount in mounts},
        "cgroups": {str(d) for point in points for d in Path(point).iterdir() if d.is_dir()}
        - _living(points),
        "settings": {f"{name} {Path('/proc/sys', name).read_text()}" for name in SETTINGS},
        "processes": set(_programs()),
        "places": {place for place in PLACES if Path(place).exists()},
    }


def added(before: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return what is on the host that was not there before."""
    return {kind: new for kind, found in host_state().items() if (new := found - before[kind])}


def _living(points: list[str]) -> set[str]:
    """Return the cgroups of testbeds that somebody else has up."""
    return {f"{point}/{cgroups.name_of(box.pid)}" for point in points for box in Sandbox.all()}


def _programs() -> Iterator[str]:
    """Yield the command lines of components and containers that are in no sandbox."""
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(directory / "ns" / "pid") != os.readlink("/proc/self/ns/pid"):  # noqa: PTH115
                continue
            words = (directory / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if os.path.basename(words[0]).startswith(PROGRAMS):  # noqa: PTH119 (of no path here)
            yield " ".join(words)


@contextmanager
def brought_up(scenario: Scenario) -> Iterator[Testbed]:
    """Lend a testbed on real Kubernetes; see to it that nothing of it is left."""
    before = host_state()
    testbed = assemble(scenario, "netns", "kubernetes")
    testbed.up()
    try:
        yield testbed
    finally:
        testbed.down()
    assert added(before) == {}


@pytest.fixture(scope="session")
def pair() -> Iterator[Testbed]:
    """Two clusters on the same two workers: 400 Mbit/s promised of 1 Gbit/s, and kept on the uplink."""
    scenario = load(SCENARIOS / "contmec.yaml", ["enforcement=node", "underlay.rate=20G"], scale=0.05)
    with brought_up(scenario) as testbed:
        yield testbed


@pytest.fixture
def untouched_host() -> Iterator[None]:
    """See to it that a test leaves nothing on the host."""
    before = host_state()
    yield
    assert added(before) == {}


def invoke(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the project's, as a user does."""
    return subprocess.run(
        [sys.executable, "tasks.py", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, **environment},
    )  # fmt: skip


def until(what: Callable[[], object], seconds: float, hint: Callable[[], str] = lambda: "") -> float:
    """Wait until something is true, and return how long that took.

    An API is asked, which announces nothing to a test; now and then, for the answer takes processors that
    those waited for need.
    """
    begin = time.monotonic()
    while not what():
        assert time.monotonic() < begin + seconds, f"not after {seconds:g} s: {hint()}"
        time.sleep(1)
    return time.monotonic() - begin


def ledger(node: Node) -> list[dict[str, Any]]:
    """Return the attachments in a worker's ledger."""
    told = node.run([str(plugin.DIRECTORY / "concorde"), "ledger", "--json"]).json()
    found: list[dict[str, Any]] = told["attachments"]
    return found
