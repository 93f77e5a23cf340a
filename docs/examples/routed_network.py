"""A pod network: every node routes to the other nodes' pods, and nothing is put around their packets.

Of ``PodNetwork`` it says what is its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import Field

from testbed.overlays import kernel_state
from testbed.overlays.kernel_state import KernelState
from testbed.overlays.pod_network import PodNetwork
from testbed.overlays.registry import register
from testbed.scenario.networks import Network
from testbed.scenario.words import Part


class Routes(Part):
    """A scenario's settings.backend.routed."""

    metric: int = Field(
        0, ge=0, le=2**31, description="of the routes: of two into one subnet the lower one counts"
    )


@dataclass(frozen=True)
class Routed(PodNetwork):
    """One cluster's routes."""

    settings: Routes

    def links(self, node: str) -> str:
        """Return a route to the pods of each other node of the cluster, by way of that node."""
        how = f"dev {self.addressing.uplink(node)} metric {self.settings.metric}"
        return "".join(f"route add {subnet} via {via} {how}\n" for subnet, via in self.ways(node))

    def wanted(self, node: str, found: Mapping[str, KernelState]) -> Iterator[str]:
        """Yield these routes, so that a testbed's check finds one that is gone."""
        for subnet, via in self.ways(node):
            yield kernel_state.route(subnet, via, self.addressing.uplink(node))


register(Network("routed", settings=Routes()), Routed)
