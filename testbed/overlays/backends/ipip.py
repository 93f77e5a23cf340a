"""A cluster's tunnels of IP in IP, as flannel's ipip backend makes them: one device, and routes through it.

Each node has a device ``flannel.ipip`` from its own address to any, and for every other node a route to its
pod subnet via that node's address, ``onlink`` because the device has no network of its own (flannel,
``pkg/backend/ipip/ipip.go``). Where a packet goes is said by its route, so there are no neighbours and no
forwarding entries. A packet grows by one IPv4 header.

Two such devices of one node would both take what comes for its address: one cluster a node has this backend.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.access.place import Feature
from testbed.links import without_link_local
from testbed.overlays import kernel_state
from testbed.overlays.kernel_state import KernelState
from testbed.overlays.pod_network import PodNetwork

DEVICE = "flannel.ipip"
FEATURE = Feature(
    "IP in IP (backend ipip)",
    ("ip", "link", "add", "dipip", "type", "ipip", "local", "127.0.0.1"),
    "CONFIG_NET_IPIP",
    needed=False,
)


@dataclass(frozen=True)
class Tunnels(PodNetwork):
    """One cluster's tunnels."""

    def links(self, node: str) -> str:
        """Return the device with its address, and a route to the pods of every other node."""
        lines = [
            f"link add {DEVICE} mtu {self._mtu} type ipip local {self.addressing.address(node)}",
            *without_link_local(DEVICE),
            f"link set {DEVICE} up",
            f"address add {self._address(node)} dev {DEVICE}",
            *(f"route add {subnet} via {via} dev {DEVICE} onlink" for subnet, via in self.ways(node)),
        ]
        return "\n".join(lines) + "\n"

    def devices(self, node: str) -> Sequence[str]:
        """Return the device."""
        return [DEVICE]

    def features(self) -> Sequence[Feature]:
        """Return that of such devices."""
        return [FEATURE]

    def flannel(self) -> Mapping[str, Any]:
        """Return flannel's configuration of its ipip backend."""
        return {"Type": "ipip"}

    def wanted(self, node: str, found: Mapping[str, KernelState]) -> Iterator[str]:
        """Yield the device and these routes."""
        yield kernel_state.tunnel(DEVICE, "ipip", str(self.addressing.address(node)), "any", self._mtu)
        yield kernel_state.is_up(DEVICE)
        yield kernel_state.has_address(DEVICE, self._address(node))
        for subnet, via in self.ways(node):
            yield kernel_state.route(subnet, via, DEVICE)

    def _address(self, node: str) -> str:
        return f"{self.addressing.pod_subnet(self.cluster, node).network_address}/32"

    @property
    def _mtu(self) -> int:
        return self.addressing.overlay_mtu(self.cluster)
