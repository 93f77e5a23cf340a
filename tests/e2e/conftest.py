"""What tests of real Kubernetes share: the overlapped pair, up once, and what the host must be like after."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

from testbed import doctor, resources
from testbed.access.place import CommandError, Node
from testbed.assembly import assemble
from testbed.kubernetes.client import Client
from testbed.scenario import Scenario, load
from testbed.testbed import Testbed
from tests import waiting
from tests.e2e import served
from tests.leftovers import added, host_state
from tests.paths import ROOT

SCENARIOS = ROOT / "scenarios"
# For what comes to be: tests wait, and benchmarks measure. How fast a machine is, is not what is tested.
PATIENCE_SECONDS = 300
until = partial(waiting.until, patience=PATIENCE_SECONDS, every=1)
MOST_SECONDS = 1800  # of a test, with the clusters that it brings up


# Files whose tests need the overlapped pair: one process runs them, so that it comes up once.
_PAIRED = ("addresses_installed", "devices_installed", "overlapped", "served_pair")
PAIRED = {f"test_{name}.py" for name in _PAIRED}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(MOST_SECONDS))


def clusters_of(test: str) -> str:
    """Return what tests of the same clusters have in common, of one's id."""
    file = Path(test.partition("::")[0]).name
    return "pair" if file in PAIRED else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    scheduler = LoadFileScheduling(config, log)
    scheduler._split_scope = clusters_of  # as pytest-xdist's documentation says that it is done
    return scheduler


@pytest.fixture(scope="session", autouse=True)
def _kubernetes_is_possible() -> None:
    if found := list(doctor.missing_for_kubernetes()):
        pytest.skip("; ".join(found))


@contextmanager
def brought_up(scenario: Scenario) -> Iterator[Testbed]:
    """Lend a testbed on real Kubernetes; see to it that nothing of it is left."""
    with lent(assemble(scenario, "netns", "kubernetes")) as testbed:
        yield testbed


@contextmanager
def lent(testbed: Testbed) -> Iterator[Testbed]:
    """Lend a testbed that is not up yet, and likewise."""
    before = host_state()
    testbed.up()
    try:
        yield testbed
    finally:
        testbed.down()
    assert added(before, host_state()) == {}


@pytest.fixture(scope="session")
def pair() -> Iterator[Testbed]:
    """Two clusters on the same two workers: 400 Mbit/s promised of 1 Gbit/s, and kept on the uplink.

    Each worker is a zone, and both clusters have services.
    """
    asked = "{name: ask, from: A-4, to: A-2, rate: 50, duration: 1}"
    overrides = [
        "enforcement=node",
        "underlay.rate=20G",
        "flows=[]",
        "disturbances=[]",
        "zones={left: {}, right: {}}",
        *(f"nodes.{name}={{zone: left}}" for name in ("master-01", "master-02")),
        "nodes.worker-01={zone: left, cpus: 3}",
        "nodes.worker-02={zone: right, cpus: 1}",
        f"services={served.services()}",
        f"requests=[{', '.join([asked, *served.requests()])}]",
    ]
    scenario = load(SCENARIOS / "contmec.yaml", overrides, scale=0.05)
    with brought_up(scenario) as testbed:
        yield testbed


@contextmanager
def prompt(client: Client, namespace: str) -> Iterator[None]:
    """Let a kubelet before 1.21 say at once that a pod is ready, or gone: it looks when the pod changes.

    By itself it says so up to a minute later, or ten seconds.
    """
    ended = threading.Event()

    def touch() -> None:
        count = 0
        while not ended.wait(1):
            count += 1
            with suppress(CommandError):  # who takes the API away says so
                pods = client.get("pods", f"--namespace={namespace}")["items"]
                if late := [pod["metadata"]["name"] for pod in pods if is_late(pod)]:
                    change = ["label", "--overwrite", f"--namespace={namespace}", "pods", *late]
                    client.run(*change, f"looked={count}", check=False)

    thread = threading.Thread(target=touch)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def is_late(pod: dict[str, Any]) -> bool:
    """Whether a pod has started or is to end, and the API does not know that it is ready or gone."""
    states = pod["status"].get("containerStatuses", [])
    ending = "deletionTimestamp" in pod["metadata"]
    return ending or any(state.get("started") and not state["ready"] for state in states)


@pytest.fixture
def untouched_host() -> Iterator[None]:
    """See to it that a test leaves nothing on the host."""
    before = host_state()
    yield
    assert added(before, host_state()) == {}


def invoke(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the project's, as a user does."""
    return subprocess.run(
        [sys.executable, "tasks.py", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, **environment},
    )  # fmt: skip


def ledger(node: Node) -> list[dict[str, Any]]:
    """Return the attachments in a worker's ledger."""
    told = node.run([str(resources.BUILT_PLUGIN / "concorde"), "ledger", "--json"]).json()
    found: list[dict[str, Any]] = told["attachments"]
    return found
