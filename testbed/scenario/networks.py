"""The kinds of pod networks, as far as rules and arithmetic need them: what one adds to a packet on its way.

How one is made on nodes is ``testbed.networks``; which one a cluster has is said by the cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from testbed.scenario.model import Cluster, Scenario
from testbed.scenario.names import NETWORKS


class Once(NamedTuple):
    """What a cluster's network has on its nodes, and no other may have there too."""

    words: str  # the same words are the same thing, whatever the kind of the network
    field: tuple[str, ...]  # of the cluster, that says it


@dataclass(frozen=True)
class Network:
    """A kind of pod network."""

    name: str  # as a cluster's ``backend`` says it
    overhead: int = 0  # bytes that a pod's packet grows by on the underlay
    has_vtep: bool = False  # whether pods' packets pass a VXLAN device on their nodes

    def once(self, scenario: Scenario, cluster: str) -> Sequence[Once]:
        """Return what may be on a node once only."""
        return ()

    def outside(self, cluster: Cluster) -> Sequence[str]:
        """Return nftables matches of what pods' packets are on the underlay, if they are wrapped there."""
        return ()

    def control_ports(self, scenario: Scenario, cluster: str) -> Sequence[int]:
        """Return the TCP ports by which its daemons talk with those of other nodes."""
        return ()


class Vxlan(Network):
    """VXLAN, as flannel programs it: a node knows one VXLAN device of each VNI."""

    def once(self, scenario: Scenario, cluster: str) -> Sequence[Once]:
        """Return the VXLAN network identifier."""
        return [Once(f"VNI {scenario.clusters[cluster].flannel.vni}", ("flannel", "vni"))]

    def outside(self, cluster: Cluster) -> Sequence[str]:
        """Return the UDP port of the VTEPs."""
        return [f"udp dport {cluster.flannel.port}"]


_known: dict[str, Network] = {}


def register(network: Network) -> None:
    """Let scenarios say a kind's name from now on. Raises ValueError for a name that is taken."""
    NETWORKS.add(network.name)
    _known[network.name] = network


def of(cluster: Cluster) -> Network:
    """Return the kind that a cluster's pod network is."""
    return _known[cluster.backend]


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
register(Vxlan("vxlan", overhead=50, has_vtep=True))
