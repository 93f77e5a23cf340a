"""A cluster's overlay between nodes, as flannel's vxlan backend programs it.

Each node of a cluster has a VTEP of that cluster. For every other node flannel writes three entries ahead of
time (flannel, ``pkg/backend/vxlan/vxlan_network.go``): a route to its pod subnet via the remote VTEP's
address, ``onlink`` because that address is on no local network; the neighbour entry from that address to the
remote VTEP's MAC; the forwarding entry from that MAC to the node's address on the underlay. A worker of two
clusters has two VTEPs with different network identifiers, and a ``subnet.env`` for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from testbed.scenario import Scenario, addressing
from testbed.scenario.addressing import clusters_of, pod_mtu, vtep_name


@dataclass(frozen=True)
class Remote:
    """What flannel's entries on a node say of another node of the cluster; the VTEP's MAC is the rest."""

    node: str
    subnet: IPv4Network  # of its pods
    vtep: IPv4Address
    address: IPv4Address  # on the underlay


def remotes(scenario: Scenario, cluster: str, node: str) -> Iterator[Remote]:
    """Yield what a node must know of each other node of a cluster."""
    for other in scenario.clusters[cluster].nodes:
        if other != node:
            subnet = scenario.pod_subnet(cluster, other)
            yield Remote(other, subnet, _vtep_address(scenario, cluster, other), _address(scenario, other))


def vtep_mac(scenario: Scenario, cluster: str, node: str) -> str:
    """Return a VTEP's MAC address: locally administered, made of its network identifier and node address."""
    low_byte = scenario.clusters[cluster].flannel.vni & 0xFF
    return ":".join(f"{byte:02x}" for byte in (0x0E, low_byte, *_address(scenario, node).packed))


def render_links(scenario: Scenario, node: str) -> str:
    """Return the ``ip -batch`` text for all VTEPs of a node, with their routes and neighbours."""
    lines = []
    for cluster in clusters_of(scenario, node):
        vxlan = scenario.clusters[cluster].flannel
        vtep = vtep_name(scenario, cluster)
        lines += [
            f"link add {vtep} address {vtep_mac(scenario, cluster, node)} mtu {pod_mtu(scenario)} type vxlan "
            f"id {vxlan.vni} dev {addressing.uplink(scenario, node)} local {_address(scenario, node)} "
            f"dstport {vxlan.port} nolearning",
            f"link set {vtep} addrgenmode none",
            f"link set {vtep} up",
            f"address add {_vtep_address(scenario, cluster, node)}/32 dev {vtep}",
        ]
        for remote in remotes(scenario, cluster, node):
            mac = vtep_mac(scenario, cluster, remote.node)
            lines += [
                f"neighbour add {remote.vtep} lladdr {mac} dev {vtep} nud permanent",
                f"route add {remote.subnet} via {remote.vtep} dev {vtep} onlink",
            ]
    return "".join(f"{line}\n" for line in lines)


def render_forwarding(scenario: Scenario, node: str) -> str:
    """Return the ``bridge -batch`` text that says behind which node each remote VTEP is."""
    return "".join(
        f"fdb add {vtep_mac(scenario, cluster, remote.node)} dev {vtep_name(scenario, cluster)} "
        f"dst {remote.address} self permanent\n"
        for cluster in clusters_of(scenario, node)
        for remote in remotes(scenario, cluster, node)
    )


def render_subnet_file(scenario: Scenario, cluster: str, node: str) -> str:
    """Return what flannel writes to ``subnet.env`` on a node."""
    subnet = scenario.pod_subnet(cluster, node)
    return (
        f"FLANNEL_NETWORK={scenario.clusters[cluster].pod_cidr}\n"
        f"FLANNEL_SUBNET={subnet.network_address + 1}/{subnet.prefixlen}\n"
        f"FLANNEL_MTU={pod_mtu(scenario)}\n"
        "FLANNEL_IPMASQ=false\n"
    )


def _address(scenario: Scenario, node: str) -> IPv4Address:
    return addressing.addresses(scenario)[node].ip


def _vtep_address(scenario: Scenario, cluster: str, node: str) -> IPv4Address:
    return scenario.pod_subnet(cluster, node).network_address
