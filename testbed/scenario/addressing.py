"""Addresses, names of devices and MTU, as they follow from a scenario."""

from __future__ import annotations

from ipaddress import IPv4Interface

from testbed.scenario import Scenario

# IPv4 20 + UDP 8 + VXLAN 8 + inner Ethernet 14 bytes (RFC 7348, section 5).
ENCAPSULATION_BYTES = 50


def clusters_of(scenario: Scenario, node: str) -> list[str]:
    """Return the clusters a node belongs to."""
    return [name for name, cluster in scenario.clusters.items() if node in cluster.nodes]


def pod_mtu(scenario: Scenario) -> int:
    """Return the MTU of VTEPs and pods, bytes: the underlay's, less the encapsulation."""
    return scenario.underlay.mtu - ENCAPSULATION_BYTES


def vtep_name(scenario: Scenario, cluster: str) -> str:
    """Return the name of a cluster's VXLAN device, the same on every node."""
    return f"flannel.{scenario.clusters[cluster].flannel.vni}"


def subnet_file(cluster: str) -> str:
    """Return the path of the file in which flannel tells CNI plugins a node's subnet and MTU."""
    return f"/run/flannel/subnet-{cluster}.env"


UPLINK = "eth0"

# Leaves .1 to .10 to gateways and hosts, as lab networks do, where the network is large enough.
FIRST_HOST = 11


def addresses(scenario: Scenario) -> dict[str, IPv4Interface]:
    """Return each node's address on the underlay, in the order of the scenario.

    Nodes that state none are numbered; they all do or none does (testbed.scenario.rules).
    """
    cidr = scenario.underlay.cidr
    first = FIRST_HOST if FIRST_HOST + len(scenario.nodes) < cidr.num_addresses else 1
    return {
        name: IPv4Interface((node.address or cidr.network_address + first + index, cidr.prefixlen))
        for index, (name, node) in enumerate(scenario.nodes.items())
    }


def uplink(scenario: Scenario, node: str) -> str:
    """Return the name of a node's interface on the underlay."""
    return scenario.nodes[node].uplink or UPLINK
