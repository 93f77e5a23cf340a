"""A scenario's services, nodes and zones as hints know them, and the hints that follow; pure.

They are allocated by who does it on clusters (``edge.services.hints``), with the scenario's zones, processors
and trunks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import combinations

from edge.services.endpoints import Endpoint, Node, Slice
from edge.services.hints import OFF, Result, allocate
from testbed.scenario.addressing import Addressing
from testbed.scenario.model import Scenario

LOCAL = "Local"
# Of a node where no node says how many it has.
_USUAL_MILLI_CPU = 1000


def nodes(addressing: Addressing, cluster: str, down: Collection[str] = ()) -> list[Node]:
    """Return a cluster's nodes; those without a block of addresses are not ready, as who is ``down``."""
    scenario = addressing.scenario
    usual = _USUAL_MILLI_CPU if all(one.cpus is None for one in scenario.nodes.values()) else 0
    own = scenario.clusters[cluster]
    return [
        Node(
            name,
            scenario.nodes[name].zone or "",
            round((scenario.nodes[name].cpus or 0) * 1000) or usual,
            ready=name in addressing.members(cluster) and name not in down,
            control_plane=name == own.master,
        )
        for name in own.nodes
    ]


def delays(scenario: Scenario) -> dict[tuple[str, str], float]:
    """Return how long each zone's packets take to each other's, one way, seconds."""
    zones = scenario.zones
    return {(one, other): zones[one].delay + zones[other].delay for one, other in combinations(zones, 2)}


def text_of_delays(scenario: Scenario) -> str:
    """Return the same as who publishes hints is told it; empty without zones."""
    return ",".join(f"{one}:{other}={seconds}" for (one, other), seconds in delays(scenario).items())


def slice_of(
    addressing: Addressing, service: str, addresses: Mapping[str, str], ready: Collection[str]
) -> Slice:
    """Return a service's endpoints, of those of its pods that have ``addresses``."""
    pods = [name for name in addressing.services[service].pods if name in addresses]
    return Slice(service, tuple(_endpoint(addressing, name, addresses[name], name in ready) for name in pods))


def _endpoint(addressing: Addressing, pod: str, address: str, ready: bool) -> Endpoint:
    node = addressing.pods[pod].node
    return Endpoint(address, addressing.scenario.nodes[node].zone or "", node, ready)


def hinted(
    addressing: Addressing,
    service: str,
    endpoints: Slice,
    mode: str | None = None,
    down: Collection[str] = (),
) -> Result:
    """Return a service's endpoints with their hints, or why they have none.

    Without ``mode`` they are as the scenario wants them; nodes that are ``down`` are not ready.
    """
    own = addressing.services[service]
    wanted = OFF if own.policy == LOCAL else mode or own.hints
    return allocate(wanted, nodes(addressing, own.cluster, down), [endpoints], delays(addressing.scenario))
