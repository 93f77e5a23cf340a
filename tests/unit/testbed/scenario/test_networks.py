"""What the kinds of pod networks add to packets, and what no two of them may share on a node."""

from __future__ import annotations

import pytest

from testbed.scenario import networks
from testbed.scenario.addressing import Addressing
from tests.unit.testbed.builders import addressed


@pytest.mark.parametrize(("underlay", "pods"), [(1500, 1450), (9000, 8950)])
def test_vxlan_leaves_pods_50_bytes_less(underlay: int, pods: int) -> None:
    scenario = addressed("contmec", f"underlay.mtu={underlay}").scenario
    assert networks.of(scenario.clusters["a"]).overhead == 50
    assert networks.pod_mtu(scenario, "a") == pods


def test_containers_packets_do_not_grow(contmec: Addressing) -> None:
    assert networks.path_of(contmec.scenario, "A-1") == (1450, 50)
    assert networks.path_of(contmec.scenario, "container-1") == (1500, 0)


def test_a_vni_is_what_vxlan_has_once_on_a_node(contmec: Addressing) -> None:
    first, second = contmec.scenario.clusters.values()
    of_first, of_second = networks.of(first).identity(first), networks.of(second).identity(second)
    assert of_first == (1, ("flannel", "vni"), "VNI 1")
    assert of_second is not None
    assert of_second.value == 2


def test_a_plain_network_shares_nothing(contmec: Addressing) -> None:
    plain = networks.Network("plain")
    assert plain.identity(contmec.scenario.clusters["a"]) is None
    assert (plain.overhead, plain.has_device) == (0, False)
