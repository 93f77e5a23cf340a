"""The reference ``bandwidth`` plugin, as a cluster without Concorde uses it."""

from __future__ import annotations

import pytest

from testbed.enforcements import registry
from testbed.runtime.cni import ANNOTATIONS
from testbed.scenario.addressing import Addressing
from tests.unit.testbed.builders import addressed


@pytest.fixture
def plain() -> Addressing:
    return addressed("contmec", "enforcement=bandwidth")


def test_the_reference_plugins_are_chained_and_never_checked(plain: Addressing) -> None:
    network = registry.of(plain).network_list("a", "worker-02")
    bridge, bandwidth = network.plugins
    assert (bridge["type"], bridge["bridge"], bridge["mtu"]) == ("bridge", "cni-a", 1450)
    assert bridge["ipam"]["ranges"] == [[{"subnet": "172.16.2.0/24"}]]
    assert bandwidth == {"type": "bandwidth", "capabilities": {"bandwidth": True}}
    assert network.disable_check


def test_a_guarantee_becomes_a_limit(plain: Addressing) -> None:
    enforcement, pod = registry.of(plain), plain.scenario.pods["A-1"]
    assert enforcement.annotations(pod) == {"kubernetes.io/egress-bandwidth": "1G"}
    offered = enforcement.attachment("A-1").capabilities
    assert offered["bandwidth"]["EgressRate"] == 10**9
    assert "bandwidth" not in enforcement.attachment("A-4").capabilities
    assert ANNOTATIONS in offered  # what a deployment file says is handed on all the same


def test_it_leaves_addresses_on_a_node_and_no_tables(plain: Addressing) -> None:
    footprint = registry.of(plain).footprint("worker-01")
    assert (footprint.state, footprint.tables, footprint.trees) == (("/run/cni-addresses",), (), ())


def test_it_needs_no_concorde_on_nodes_that_exist(plain: Addressing) -> None:
    assert not registry.of(plain).installed
