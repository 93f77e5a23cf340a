"""Which parts a testbed is made of."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.assembly import assemble
from testbed.orchestrators import Orchestrator
from testbed.orchestrators.clusters.on_machines import PodsOnMachines
from testbed.orchestrators.cni import CniOrchestrator
from testbed.scenario.addressing import Addressing
from testbed.testbed import Testbed


@pytest.fixture
def inventory(contmec: Addressing, tmp_path: Path) -> Path:
    file = tmp_path / "hosts.yaml"
    hosts = "".join(f"    {name}: {{ansible_host: 192.0.2.1}}\n" for name in contmec.nodes)
    file.write_text(f"all:\n  hosts:\n{hosts}")
    return file


def orchestrator(testbed: Testbed) -> Orchestrator:
    """Return what will run the pods once the nodes are up."""
    return testbed._parts.orchestrate(testbed.addressing, testbed.enforcement, {})


def test_kubernetes_on_machines_is_what_was_provisioned(contmec: Addressing, inventory: Path) -> None:
    provisioned = assemble(contmec.scenario, f"ssh:{inventory}", "kubernetes")
    assert isinstance(orchestrator(provisioned), PodsOnMachines)
    assert isinstance(orchestrator(assemble(contmec.scenario, f"ssh:{inventory}", "cni")), CniOrchestrator)
