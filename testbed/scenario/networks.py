"""The kinds of pod networks, as far as rules and arithmetic need them: what one adds to a packet on its way.

How one is made on nodes is ``testbed.overlays``; which one a cluster has is said by the cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from testbed.registry import Registry
from testbed.scenario import enforcements
from testbed.scenario.frames import IPV4_HEADER
from testbed.scenario.model import NETWORKS, Cluster, Scenario
from testbed.scenario.words import Part

FIRST_BGP_PORT = 179  # RFC 4271
NEXT_BGP_PORTS = 1789  # and a position: 1790 for the second cluster
FIRST_ETCD_PORT = 4001  # the first etcd's, which flannel's documents name; Kubernetes' own has another
FIRST_TABLE = 101  # the kernel's own are 253 to 255


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
    needs_neighbours: bool = False  # whether routes lead to other nodes, which must be on the same layer 2
    # Whether it knows but one network of all pods, as flannel does.
    knows_one_network: bool = True
    settings: Part | None = None  # its own, where a scenario says nothing; handed to what makes it

    def once(self, scenario: Scenario, cluster: str) -> Sequence[Once]:
        """Return what may be on a node once only."""
        return ()

    def outside(self, cluster: Cluster) -> Sequence[str]:
        """Return nftables matches of what pods' packets are on the underlay, if they are wrapped there."""
        return ()

    def fields(self) -> Sequence[str]:
        """Return the fields of a cluster that only this kind has a use for."""
        return ()

    def faults(self, scenario: Scenario, cluster: str) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield what of a cluster does not fit, each with the cluster's field that says it."""
        yield from ()

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


class VxlanMiss(Vxlan):
    """VXLAN as the first flannel programmed it: entries are made when the kernel misses them."""

    def fields(self) -> Sequence[str]:
        """Return what says when they are made."""
        return ["resolve"]

    def control_ports(self, scenario: Scenario, cluster: str) -> Sequence[int]:
        """Return the port of etcd, which has what the nodes tell each other."""
        return [etcd_port(scenario, cluster)]


class Ipip(Network):
    """IP in IP, as flannel does it: a node has one device that takes all that is sent to its address."""

    def once(self, scenario: Scenario, cluster: str) -> Sequence[Once]:
        """Return the device."""
        return [Once("an IPIP device", ("backend",))]

    def outside(self, cluster: Cluster) -> Sequence[str]:
        """Return the protocol of the outer header."""
        return ["ip protocol ipip"]


class BgpRouted(Network):
    """Routes told by BGP: a node has one daemon of each port, and tables that are told apart by numbers."""

    def once(self, scenario: Scenario, cluster: str) -> Sequence[Once]:
        """Return the port on which the daemon listens."""
        return [Once(f"BGP port {bgp_port(scenario, cluster)}", ("bgp", "port"))]

    def fields(self) -> Sequence[str]:
        """Return what says how the daemons talk."""
        return ["bgp"]

    def faults(self, scenario: Scenario, cluster: str) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield a route reflector that is no node of the cluster."""
        own = scenario.clusters[cluster]
        reflector = own.bgp.route_reflector if own.bgp else None
        if reflector is not None and reflector not in own.nodes:
            words = f"{reflector!r} is not a node of this cluster (nodes: {', '.join(own.nodes)})"
            yield ("bgp", "route_reflector"), words

    def control_ports(self, scenario: Scenario, cluster: str) -> Sequence[int]:
        """Return the port on which the daemon listens."""
        return [bgp_port(scenario, cluster)]


def bgp_port(scenario: Scenario, cluster: str) -> int:
    """Return the TCP port of a cluster's BGP daemons: BGP's own for the first cluster that states none."""
    own = scenario.clusters[cluster].bgp
    position = _position(scenario, cluster)
    return own.port if own and own.port else FIRST_BGP_PORT if position == 0 else NEXT_BGP_PORTS + position


def bgp_table(scenario: Scenario, cluster: str) -> int:
    """Return the number of the routing table that a cluster's BGP daemons write."""
    return FIRST_TABLE + _position(scenario, cluster)


def etcd_port(scenario: Scenario, cluster: str) -> int:
    """Return the TCP port of the etcd of a cluster's overlay; the next one is etcd's own, too."""
    return FIRST_ETCD_PORT + 2 * _position(scenario, cluster)


def _position(scenario: Scenario, cluster: str) -> int:
    """Return how many earlier clusters have the same backend."""
    own = scenario.clusters[cluster].backend
    return [name for name, one in scenario.clusters.items() if one.backend == own].index(cluster)


KINDS: Registry[Network] = NETWORKS


def register(network: Network) -> None:
    """Let scenarios say a kind's name from now on. Raises ValueError for a name that is taken."""
    KINDS.register(network.name, network)


def of(cluster: Cluster) -> Network:
    """Return the kind that a cluster's pod network is."""
    return KINDS[cluster.backend]


def pod_mtu(scenario: Scenario, cluster: str) -> int:
    """Return the MTU of a cluster's pods, bytes: the underlay's, less what is added to their packets."""
    return scenario.underlay.mtu - overhead(scenario, cluster)


def overhead(scenario: Scenario, cluster: str) -> int:
    """Return by how many bytes a packet of a cluster's pod grows on the underlay; not if the pod is on it."""
    return 0 if enforcements.of(scenario).on_underlay else of(scenario.clusters[cluster]).overhead


def path_of(scenario: Scenario, endpoint: str) -> tuple[int, int]:
    """Return the MTU of a pod or container, and by what its packets grow on the underlay, bytes."""
    if endpoint not in scenario.pods:
        return scenario.underlay.mtu, 0
    cluster = scenario.pods[endpoint].cluster
    return pod_mtu(scenario, cluster), overhead(scenario, cluster)


# IPv4 20 + UDP 8 + VXLAN 8 + inner Ethernet 14 bytes (RFC 7348, section 5).
register(Vxlan("vxlan", overhead=50, has_vtep=True))
register(VxlanMiss("vxlan-miss", overhead=50, has_vtep=True))
register(Network("host-gw", needs_neighbours=True))
register(Ipip("ipip", overhead=IPV4_HEADER))
register(BgpRouted("bgp", needs_neighbours=True, knows_one_network=False))
