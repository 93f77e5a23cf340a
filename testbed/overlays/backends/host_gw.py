"""A cluster's routes between nodes, as flannel's host-gw backend writes them: the other node is the gateway.

A node has one route for every other node of the cluster: to its pod subnet, via its address on the underlay
(flannel, ``pkg/backend/hostgw/hostgw.go``). Nothing is put around a packet, so pods have the underlay's MTU;
and the other node must be a neighbour, or there is no such gateway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from testbed.overlays import kernel_state
from testbed.overlays.kernel_state import KernelState
from testbed.overlays.pod_network import PodNetwork


@dataclass(frozen=True)
class Gateways(PodNetwork):
    """One cluster's routes."""

    def links(self, node: str) -> str:
        """Return a route to the pods of every other node."""
        uplink = self.addressing.uplink(node)
        return "".join(f"route add {subnet} via {via} dev {uplink}\n" for subnet, via in self.ways(node))

    def flannel(self) -> Mapping[str, Any]:
        """Return flannel's configuration of its host-gw backend."""
        return {"Type": "host-gw"}

    def wanted(self, node: str, found: Mapping[str, KernelState]) -> Iterator[str]:
        """Yield these routes."""
        for subnet, via in self.ways(node):
            yield kernel_state.route(subnet, via, self.addressing.uplink(node))
