"""Which pod networks there are: what makes each kind that a cluster's ``backend`` may name."""

from __future__ import annotations

from collections.abc import Callable

from testbed.overlays.backends.bgp import Bird
from testbed.overlays.backends.host_gw import Gateways
from testbed.overlays.backends.ipip import Tunnels
from testbed.overlays.backends.vxlan import Overlay
from testbed.overlays.backends.vxlan_miss import Resolved
from testbed.overlays.pod_network import PodNetwork
from testbed.scenario import networks
from testbed.scenario.addressing import Addressing
from testbed.scenario.networks import Network

# Of an Addressing, a cluster's name, and the kind's settings if it has any.
Make = Callable[..., PodNetwork]

# The shipped ones, whose kinds the scenario knows by itself, and those that are registered.
MAKERS: dict[str, Make] = {
    "vxlan": Overlay,
    "vxlan-miss": Resolved,
    "host-gw": Gateways,
    "ipip": Tunnels,
    "bgp": Bird,
}


def register(kind: Network, make: Make) -> None:
    """Make a pod network known to scenarios and testbeds. Raises ValueError for a name that is taken."""
    networks.register(kind)
    MAKERS[kind.name] = make


def of_cluster(addressing: Addressing, cluster: str) -> PodNetwork:
    """Return the pod network of a cluster."""
    name = addressing.network(cluster).name
    return MAKERS[name](addressing, cluster, *networks.KINDS.handed(name, addressing.scenario.settings))
