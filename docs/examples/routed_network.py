"""A pod network: every node routes to the other nodes' pods, and nothing is put around their packets.

This is what flannel calls host-gw: it takes nodes that are neighbours on one network, and leaves pods the
whole MTU of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network

from testbed.networks.registry import register
from testbed.scenario.addressing import Addressing
from testbed.scenario.networks import Network


@dataclass(frozen=True)
class Routed:
    """One cluster's routes; see testbed.networks.pod_network.PodNetwork."""

    addressing: Addressing
    cluster: str

    def links(self, node: str) -> str:
        """Return a route to the pods of each other node of the cluster, by way of that node."""
        addressing = self.addressing
        others = [other for other in addressing.scenario.clusters[self.cluster].nodes if other != node]
        return "".join(
            f"route add {addressing.pod_subnet(self.cluster, other)} via {addressing.address(other)} "
            f"dev {addressing.uplink(node)}\n"
            for other in others
        )

    def forwarding(self, node: str) -> str:
        """Nothing: no frame is taken apart or put together."""
        return ""

    def files(self, node: str) -> Mapping[str, str]:
        """Return what tells the CNI plugin a node's subnet and MTU, in the form that it reads."""
        subnet = self.addressing.pod_subnet(self.cluster, node)
        text = (
            f"FLANNEL_NETWORK={self.addressing.scenario.clusters[self.cluster].pod_cidr}\n"
            f"FLANNEL_SUBNET={subnet.network_address + 1}/{subnet.prefixlen}\n"
            f"FLANNEL_MTU={self.addressing.pod_mtu(self.cluster)}\n"
            "FLANNEL_IPMASQ=false\n"
        )
        return {self.addressing.subnet_file(self.cluster): text}

    def devices(self, node: str) -> Sequence[str]:
        """None: packets leave by the uplink as they are."""
        return []

    def routes(self, node: str) -> Sequence[IPv4Network]:
        """Return the whole network of the cluster's pods."""
        return [self.addressing.scenario.clusters[self.cluster].pod_cidr]


register(Network("routed"), Routed)
