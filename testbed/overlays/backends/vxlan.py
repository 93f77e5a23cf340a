"""A cluster's overlay between nodes, as flannel's vxlan backend programs it.

Each node of a cluster has a VTEP of that cluster. For every other node flannel writes three entries ahead of
time (flannel, ``pkg/backend/vxlan/vxlan_network.go``): a route to its pod subnet via the remote VTEP's
address, ``onlink`` because that address is on no local network; the neighbour entry from that address to the
remote VTEP's MAC; the forwarding entry from that MAC to the node's address on the underlay. A worker of two
clusters has two VTEPs with different network identifiers, and a ``subnet.env`` for each.

So a cluster's nodes have as many entries together as the square of their number. What is written of a node is
the same on all others, and is made once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from testbed.links import without_link_local
from testbed.overlays import kernel_state
from testbed.overlays.kernel_state import KernelState
from testbed.overlays.pod_network import PodNetwork


@dataclass(frozen=True)
class Remote:
    """What flannel's entries on a node say of another node of the cluster; the VTEP's MAC is the rest."""

    node: str
    subnet: IPv4Network  # of its pods
    vtep: IPv4Address
    address: IPv4Address  # on the underlay


@dataclass(frozen=True)
class Overlay(PodNetwork):
    """One cluster's overlay."""

    def links(self, node: str) -> str:
        """Return the ``ip -batch`` text for a node's VTEP, with its routes and neighbours."""
        return self.device(node) + "".join(text for other, text in self._entries.items() if other != node)

    def forwarding(self, node: str) -> str:
        """Return the ``bridge -batch`` text that says behind which node each remote VTEP is."""
        return "".join(text for other, text in self._forwarding.items() if other != node)

    def devices(self, node: str) -> Sequence[str]:
        """Return the VTEP."""
        return [self.addressing.vtep(self.cluster)]

    def flannel(self) -> Mapping[str, Any] | None:
        """Return flannel's configuration of its vxlan backend."""
        return {"Type": "vxlan", "VNI": self.own.flannel.vni, "Port": self.own.flannel.port}

    def wanted(self, node: str, found: Mapping[str, KernelState]) -> Iterator[str]:
        """Yield the VTEP, and three entries for each other node, at the MAC that its VTEP has."""
        vtep = self.addressing.vtep(self.cluster)
        yield from self.wanted_device(node)
        for remote in self.remotes(node):
            mac = found[remote.node].macs.get(vtep, "")
            yield kernel_state.neighbour(str(remote.vtep), mac, vtep)
            yield kernel_state.forwarding(mac, str(remote.address), vtep)
            yield kernel_state.route(str(remote.subnet), str(remote.vtep), vtep)

    @property
    def flags(self) -> tuple[str, ...]:
        """What the device is told besides, in the order of testbed.overlays.kernel_state."""
        return ()

    def interface(self, node: str) -> str:
        """Return the VTEP's address with its prefix."""
        return f"{self.vtep_address(node)}/32"

    def device(self, node: str) -> str:
        """Return the ``ip -batch`` text that makes a node's VTEP."""
        addressing, vxlan = self.addressing, self.own.flannel
        vtep, mtu = addressing.vtep(self.cluster), addressing.overlay_mtu(self.cluster)
        lines = [
            f"link add {vtep} address {self.mac(node)} mtu {mtu} type vxlan "
            f"id {vxlan.vni} dev {addressing.uplink(node)} local {addressing.address(node)} "
            f"dstport {vxlan.port} {' '.join(('nolearning', *self.flags))}",
            *without_link_local(vtep),
            f"link set {vtep} up",
            f"address add {self.interface(node)} dev {vtep}",
        ]
        return "".join(f"{line}\n" for line in lines)

    def wanted_device(self, node: str) -> Iterator[str]:
        """Yield that the VTEP is there, and as it was made."""
        addressing, flannel, vtep = self.addressing, self.own.flannel, self.addressing.vtep(self.cluster)
        address, mtu = str(addressing.address(node)), addressing.overlay_mtu(self.cluster)
        uplink = addressing.uplink(node)
        yield kernel_state.vtep(vtep, flannel.vni, flannel.port, address, uplink, mtu, *self.flags)
        yield kernel_state.is_up(vtep)
        yield kernel_state.has_address(vtep, self.interface(node))

    def remotes(self, node: str) -> list[Remote]:
        """Return what a node must know of each other node of the cluster."""
        return [remote for other, remote in self._remotes.items() if other != node]

    def mac(self, node: str) -> str:
        """Return a VTEP's MAC: locally administered, made of its network identifier and node address."""
        low_byte = self.own.flannel.vni & 0xFF
        packed = self.addressing.address(node).packed
        return ":".join(f"{byte:02x}" for byte in (0x0E, low_byte, *packed))

    def vtep_address(self, node: str) -> IPv4Address:
        """Return a VTEP's own address: the first of its node's pod subnet."""
        return self.addressing.pod_subnet(self.cluster, node).network_address

    @cached_property
    def _remotes(self) -> dict[str, Remote]:
        return {
            node: Remote(
                node,
                self.addressing.pod_subnet(self.cluster, node),
                self.vtep_address(node),
                self.addressing.address(node),
            )
            for node in self.nodes
        }

    @cached_property
    def _entries(self) -> dict[str, str]:
        """Neighbour and route of each node, for all others."""
        vtep = self.addressing.vtep(self.cluster)
        return {
            node: f"neighbour add {remote.vtep} lladdr {self.mac(node)} dev {vtep} nud permanent\n"
            f"route add {remote.subnet} via {remote.vtep} dev {vtep} onlink\n"
            for node, remote in self._remotes.items()
        }

    @cached_property
    def _forwarding(self) -> dict[str, str]:
        vtep = self.addressing.vtep(self.cluster)
        return {
            node: f"fdb add {self.mac(node)} dev {vtep} dst {remote.address} self permanent\n"
            for node, remote in self._remotes.items()
        }
