"""A kind of pod network that is made known from outside is one that scenarios may name."""

from __future__ import annotations

import pytest

from testbed.overlays import registry
from testbed.overlays.backends.vxlan import Overlay
from testbed.scenario import ScenarioError, networks
from testbed.scenario.addressing import Addressing
from testbed.scenario.networks import Network
from tests.unit.testbed.builders import addressed


class Routed(Overlay):
    """A network that adds nothing to a packet, and makes no device."""

    def devices(self, node: str) -> list[str]:
        return []


@pytest.fixture
def routed(own_parts: None) -> None:
    """Make it known for one test."""
    registry.register(Network("routed"), Routed)


def test_a_cluster_has_vxlan_if_it_says_nothing(contmec: Addressing) -> None:
    assert registry.of_cluster(contmec, "a") == Overlay(contmec, "a")


def test_clusters_of_one_scenario_may_have_different_networks(routed: None) -> None:
    addressing = addressed("contmec", "clusters.b.backend=routed")
    assert [type(registry.of_cluster(addressing, name)) for name in ("a", "b")] == [Overlay, Routed]
    assert [addressing.pod_mtu(name) for name in ("a", "b")] == [1450, 1500]


def test_a_network_that_nobody_knows_is_refused_with_those_there_are(routed: None) -> None:
    with pytest.raises(
        ScenarioError, match=r"clusters\.a\.backend: input should be 'vxlan', .*'bgp' or 'routed'"
    ):
        addressed("contmec", "clusters.a.backend=carrier-pigeons")


def test_a_name_is_taken_once(routed: None) -> None:
    with pytest.raises(ValueError, match="there is a pod network 'routed' already"):
        registry.register(Network("routed", overhead=20), Overlay)
    assert networks.of(addressed("contmec", "clusters.b.backend=routed").scenario.clusters["b"]).overhead == 0
