"""Which block of pod addresses each node of a cluster has: edge's allocator says it, here as live.

A scenario's ``pod_cidrs`` are ClusterCIDRConfigs in fewer words. They are made such here, so that they are
read, checked and given by what reads, checks and gives those of an API. A ``pod_cidr`` is one of them, for
all nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, collapse_addresses
from typing import Any, NamedTuple, TypeVar, cast

from edge.addresses import kinds
from edge.addresses.allocation import Allocator, Config, NoBlockError, Node, Range
from edge.addresses.inventory import Inventory
from testbed.scenario.faults import Path
from testbed.scenario.model import NODE_PREFIX, Cluster, PodCidr, PodCidr6, Scenario

N = TypeVar("N", bound=IPv4Network | IPv6Network)

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
# Where a manifest's fields are in a scenario; the longer ones first, as each is the beginning of others.
_FIELDS: Mapping[str, Path] = {
    "spec.ipv4.perNodeMaskSize": ("mask",),
    "spec.ipv6.perNodeMaskSize": ("ipv6", "mask"),
    "spec.ipv6.cidr": ("ipv6", "cidr"),
    "spec.ipv4": ("cidr",),
    "spec.ipv6": ("ipv6",),
    "spec.nodeSelector": ("nodes",),
}


class Blocks(NamedTuple):
    """What the nodes of a cluster have, in their order."""

    given: Mapping[str, IPv4Network]
    configs: Mapping[str, str]  # of which config each has it
    refused: Mapping[str, str]  # why a node has none, in words


def labels_of(scenario: Scenario, node: str) -> dict[str, str]:
    """Return a node's labels: its own, and those that it has by itself."""
    return {**(scenario.nodes[node].labels or {}), **added_labels(scenario, node)}


def added_labels(scenario: Scenario, node: str) -> dict[str, str]:
    """Return the labels that a node has by itself: its name as Kubernetes has it, and its zone if any."""
    zone = scenario.nodes[node].zone
    return {HOSTNAME: node.lower(), **({ZONE: zone} if zone else {})}


def manifest(entry: PodCidr) -> dict[str, Any]:
    """Return an entry of ``pod_cidrs`` as an API takes it."""
    ranges: dict[str, PodCidr | PodCidr6] = {"ipv4": entry}
    if entry.ipv6 is not None:
        ranges["ipv6"] = entry.ipv6
    spec: dict[str, Any] = {
        family: {"cidr": str(one.cidr), "perNodeMaskSize": one.mask} for family, one in ranges.items()
    }
    if entry.nodes:
        spec["nodeSelector"] = {"matchLabels": dict(entry.nodes)}
    return {
        "apiVersion": kinds.OURS,
        "kind": kinds.KIND,
        "metadata": {"name": entry.name.lower()},
        "spec": spec,
    }


def problems(entry: PodCidr) -> Iterator[tuple[Path, str]]:
    """Yield what is wrong with an entry of ``pod_cidrs``, each with the field of it."""
    try:
        kinds.parse(manifest(entry))
    except kinds.BadConfigError as error:
        for path, what in error.problems:
            yield next((field for start, field in _FIELDS.items() if path.startswith(start)), ()), what


def configs(cluster: Cluster) -> list[Config]:
    """Return where a cluster's blocks come from. Raises BadConfigError for one that has ``problems``."""
    if cluster.pod_cidr is not None:
        return [Config("pod_cidr", (Range(cluster.pod_cidr, cluster.node_prefix or NODE_PREFIX),))]
    return [kinds.parse(manifest(entry)) for entry in cluster.pod_cidrs or ()]


def allocate(scenario: Scenario, cluster: Cluster) -> Blocks:
    """Return who gets which block of a cluster, nodes in their order. Raises as ``configs``."""
    allocator, refused = _allocated(scenario, cluster)
    given = {node: allocator.given[node.lower()] for node in cluster.nodes if node not in refused}
    return Blocks(
        {node: cast(IPv4Network, one.blocks[0]) for node, one in given.items()},
        {node: one.config for node, one in given.items()},
        refused,
    )


def inventory(scenario: Scenario, name: str) -> Inventory:
    """Return what the nodes of a cluster have, and how many pods each is to run. Raises as ``configs``."""
    cluster = scenario.clusters[name]
    allocator, refused = _allocated(scenario, cluster)
    return Inventory(
        name,
        allocator,
        [_node(scenario, node) for node in cluster.nodes],
        Counter(pod.node.lower() for pod in scenario.pods.values() if pod.cluster == name),
        {node.lower(): why for node, why in refused.items()},
    )


def _allocated(scenario: Scenario, cluster: Cluster) -> tuple[Allocator, dict[str, str]]:
    """Return what has given each node of a cluster its block, and which got none and why."""
    allocator = Allocator()
    for config in configs(cluster):
        allocator.add(config)
    refused = {}
    for node in cluster.nodes:
        try:
            allocator.allocate(_node(scenario, node))
        except NoBlockError as error:
            refused[node] = str(error)
    return allocator, refused


def _node(scenario: Scenario, name: str) -> Node:
    return Node(name.lower(), labels_of(scenario, name))


def together(networks: Sequence[IPv4Network]) -> list[IPv4Network]:
    """Return the same addresses in as few networks as can be."""
    return list(collapse_addresses(networks))


def around(networks: Sequence[N]) -> N:
    """Return the smallest network that has all of these, which are of one family."""
    first, last = min(networks), max(networks, key=lambda one: int(one.broadcast_address))
    while last.broadcast_address not in first:
        first = cast(N, first.supernet())
    return first


def free(
    within: IPv4Network, prefix: int, taken: Collection[IPv4Network], first: IPv4Network | None = None
) -> Iterator[IPv4Network]:
    """Yield a network's subnets of this size, from ``first`` on, that overlap nothing that is taken.

    What is taken is passed over at once: a range of half of all addresses costs no more than a small one.
    """
    at, end = (first or within).network_address, within.broadcast_address
    while at in within:
        subnet = IPv4Network((at, prefix))
        last = max((one.broadcast_address for one in taken if one.overlaps(subnet)), default=None)
        if last is None:
            yield subnet
        last = max(last or subnet.broadcast_address, subnet.broadcast_address)
        if last >= end:
            break
        at = last + 1
