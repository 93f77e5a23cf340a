"""What the kinds of pod networks add to packets, and what no two of them may share on a node."""

from __future__ import annotations

import pytest

from testbed.scenario import ScenarioError, networks
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
    scenario = contmec.scenario
    once = [networks.of(one).once(scenario, name) for name, one in scenario.clusters.items()]
    assert once == [[("VNI 1", ("flannel", "vni"))], [("VNI 2", ("flannel", "vni"))]]


def test_a_plain_network_shares_nothing(contmec: Addressing) -> None:
    plain = networks.Network("plain")
    assert plain.once(contmec.scenario, "a") == ()
    assert (plain.overhead, plain.has_vtep) == (0, False)


def test_a_recorded_scenario_calls_the_backend_network() -> None:
    assert addressed("contmec", "clusters.a.network=vxlan").scenario.clusters["a"].backend == "vxlan"


def test_faults_of_the_former_word_are_the_backends() -> None:
    with pytest.raises(ScenarioError, match=r"clusters\.a\.backend: input should be "):
        addressed("contmec", "clusters.a.network=carrier-pigeons")
    with pytest.raises(ScenarioError, match="network is the former name of backend: set only one of them"):
        addressed("contmec", "clusters.a.network=vxlan", "clusters.a.backend=vxlan")
