"""What pod networks have in common that give each node of a cluster a subnet of its own, as flannel does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from testbed.access.place import Feature, Node
from testbed.overlays import seen
from testbed.overlays.pod_network import Api, Daemon, PodNetwork
from testbed.overlays.seen import Seen
from testbed.scenario.addressing import Addressing
from testbed.scenario.model import Cluster


@dataclass(frozen=True)
class PerNode(ABC):
    """One cluster's pod network; see testbed.overlays.pod_network.PodNetwork."""

    addressing: Addressing
    cluster: str

    @abstractmethod
    def links(self, node: str) -> str:
        """Return the ``ip -batch`` text that makes a node's devices, routes and neighbours."""

    @abstractmethod
    def wanted(self, node: str, found: Mapping[str, Seen]) -> Iterator[str]:
        """Yield what a node should have but its subnet's file, in the words of testbed.overlays.seen.

        ``found`` is what all nodes of the cluster have.
        """

    def forwarding(self, node: str) -> str:
        """Return nothing: no frame is wrapped."""
        return ""

    def files(self, node: str) -> Mapping[str, str]:
        """Return what flannel writes to ``subnet.env`` on a node."""
        return {self.addressing.subnet_file(self.cluster): self.subnet_env(node)}

    def devices(self, node: str) -> Sequence[str]:
        """Return nothing: packets leave by the uplink as they are."""
        return []

    def routes(self, node: str) -> Sequence[IPv4Network]:
        """Return the whole network of the cluster's pods."""
        return [self.own.pod_cidr]

    def daemons(self, node: str) -> Sequence[Daemon]:
        """Return nothing: entries are made once, and stay."""
        return []

    def rights(self, name: str) -> Sequence[Mapping[str, Any]]:
        """Return nothing: no API is asked."""
        return []

    def by_api(self, api: Api) -> PodNetwork:
        """Return the network as it is."""
        return self

    def flannel(self) -> Mapping[str, Any] | None:
        """Return that flannel does not know it."""
        return None

    def features(self) -> Sequence[Feature]:
        """Return nothing that not every kernel has."""
        return []

    def lacking(self, nodes: Mapping[str, Node]) -> list[str]:
        """Return what should be on the cluster's nodes and is not; see PodNetwork."""
        own = {name: nodes[name] for name in self.own.nodes}
        return seen.lacking(self._wanted, own, [self.addressing.subnet_file(self.cluster)])

    @property
    def own(self) -> Cluster:
        """The cluster, as the scenario has it."""
        return self.addressing.scenario.clusters[self.cluster]

    def others(self, node: str) -> list[str]:
        """Return the other nodes of the cluster."""
        return [other for other in self.own.nodes if other != node]

    def ways(self, node: str) -> Iterator[tuple[IPv4Network, IPv4Address]]:
        """Yield the pod subnet of every other node, with that node's address on the underlay."""
        for other in self.others(node):
            yield self.addressing.pod_subnet(self.cluster, other), self.addressing.address(other)

    def subnet_env(self, node: str) -> str:
        """Return what flannel writes of a node's subnet for CNI plugins."""
        subnet = self.addressing.pod_subnet(self.cluster, node)
        return (
            f"FLANNEL_NETWORK={self.own.pod_cidr}\n"
            f"FLANNEL_SUBNET={subnet.network_address + 1}/{subnet.prefixlen}\n"
            f"FLANNEL_MTU={self.addressing.overlay_mtu(self.cluster)}\n"
            "FLANNEL_IPMASQ=false\n"
        )

    def _wanted(self, node: str, found: Mapping[str, Seen]) -> Iterator[str]:
        yield from self.subnet_env(node).splitlines()
        yield from self.wanted(node, found)
