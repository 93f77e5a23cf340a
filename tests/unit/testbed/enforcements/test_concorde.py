"""What pods have in common that the plugin attaches: configuration, annotations, what a runtime offers."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed import resources
from testbed.enforcements import registry
from testbed.runtime.cni import ANNOTATIONS
from testbed.scenario.addressing import Addressing
from tests.unit.testbed.builders import addressed


def test_a_clusters_configuration_names_its_bridge_and_its_subnet_file(contmec: Addressing) -> None:
    network = registry.of(contmec).network_list("b", "worker-01")
    (plugin,) = network.plugins
    assert network.name == "cluster-b"
    assert plugin == {
        "type": "concorde",
        "bridge": "cni-b",
        "subnetFile": "/run/flannel/subnet-b.env",
        "enforcement": "pod",
        "count": "layer2",
        "capabilities": {ANNOTATIONS: True},
    }


def test_a_pods_attachment_says_what_its_deployment_file_says() -> None:
    pods = addressed("contmec", "pods.A-1.ceiling=2G")
    attachment = registry.of(pods).attachment("A-1")
    assert attachment.container_id == "contmec-A-1"
    assert attachment.namespace == "/run/netns/A-1"
    assert attachment.arguments["K8S_POD_NAME"] == "a-1"
    assert attachment.capabilities[ANNOTATIONS] == {
        "concorde.contmec.dev/egress-guarantee": "1G",
        "kubernetes.io/egress-bandwidth": "2G",
    }


TABLES = (("ip", "concorde"), ("ip6", "concorde"), ("bridge", "concorde"))  # plugin/concorde/node/tables.py


@pytest.mark.parametrize(
    ("ceiling", "rate", "burst"),
    [
        ("1M", 10**6, 84_000),  # as long as the paper's
        ("2G", 2 * 10**9, 8 * 10 * 2**20),  # the paper's: 10 MiB
        ("1k", 1000, 40_000),  # what a class needs in any case
    ],
)
def test_a_ceiling_is_offered_to_the_reference_plugin_with_the_papers_burst(
    ceiling: str, rate: int, burst: int
) -> None:
    pods = addressed("contmec", f"pods.A-4.ceiling={ceiling}")
    offered = registry.of(pods).attachment("A-4").capabilities["bandwidth"]
    assert offered == {"IngressRate": 0, "IngressBurst": 0, "EgressRate": rate, "EgressBurst": burst}


def test_who_is_promised_nothing_is_offered_nothing(contmec: Addressing) -> None:
    assert registry.of(contmec).attachment("A-4").capabilities == {ANNOTATIONS: {}}
    assert registry.of(contmec).annotations(contmec.scenario.pods["A-4"]) == {}


def test_what_it_leaves_on_a_node_is_its_state_and_tables(contmec: Addressing) -> None:
    footprint = registry.of(contmec).footprint("worker-01")
    assert (footprint.state, footprint.tables, footprint.trees) == (("/run/concorde",), TABLES, ())


def test_where_it_cannot_be_built_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    words = rf"^cannot build the plugin into {tmp_path}/file/cni: NotADirectoryError: .*Not a directory"
    with pytest.raises(RuntimeError, match=words):
        resources.build_plugin(tmp_path / "file" / "cni")
