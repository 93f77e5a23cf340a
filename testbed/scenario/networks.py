"""The kinds of pod networks, as far as rules and arithmetic need them: what one adds to a packet on its way.

How one is made on nodes is ``testbed.networks``; which one a cluster has is said by the cluster.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

from testbed.scenario.model import Cluster, Scenario
from testbed.scenario.names import NETWORKS


class Identity(NamedTuple):
    """What tells a cluster's network from others on a node, where no two may have the same."""

    value: Hashable
    field: tuple[str, ...]  # of the cluster, that says it
    words: str


@dataclass(frozen=True)
class Network:
    """A kind of pod network."""

    name: str  # as a cluster's ``network`` says it
    overhead: int = 0  # bytes that a pod's packet grows by on the underlay
    has_device: bool = False  # whether pods' packets pass a device of the network's own on their nodes

    def identity(self, cluster: Cluster) -> Identity | None:
        """Return what may be on a node once only; None if nothing is shared."""
        return None


class Vxlan(Network):
    """VXLAN, as flannel programs it: a node knows one VXLAN device of each VNI."""

    def identity(self, cluster: Cluster) -> Identity:
        """Return the VXLAN network identifier."""
        vni = cluster.flannel.vni
        return Identity(vni, ("flannel", "vni"), f"VNI {vni}")


_known: dict[str, Network] = {}


def register(network: Network) -> None:
    """Let scenarios say a kind's name from now on. Raises ValueError for a name that is taken."""
    NETWORKS.add(network.name)
    _known[network.name] = network


def of(cluster: Cluster) -> Network:
    """Return the kind that a cluster's pod network is."""
    return _known[cluster.network]


def pod_mtu(scenario: Scenario, cluster: str) -> int:
    """Return the MTU of a cluster's pods, bytes: the underlay's, less what its network adds to a packet."""
    return scenario.underlay.mtu - of(scenario.clusters[cluster]).overhead


def path_of(scenario: Scenario, endpoint: str) -> tuple[int, int]:
    """Return the MTU of a pod or container, and by what its packets grow on the underlay, bytes."""
    if endpoint not in scenario.pods:
        return scenario.underlay.mtu, 0
    cluster = scenario.pods[endpoint].cluster
    return pod_mtu(scenario, cluster), of(scenario.clusters[cluster]).overhead


# IPv4 20 + UDP 8 + VXLAN 8 + inner Ethernet 14 bytes (RFC 7348, section 5).
register(Vxlan("vxlan", overhead=50, has_device=True))
