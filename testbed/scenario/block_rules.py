"""How what a scenario says of pods' addresses must agree: ranges, masks, labels, and a block for each node.

Each rule yields faults, as those of everything else do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network

from edge.addresses import checks
from testbed.scenario import blocks, networks
from testbed.scenario.faults import Fault, Path, render_path
from testbed.scenario.model import Cluster, Scenario

# Addresses a pod never gets: the subnet's own, the gateway's (paper, section 3.3.1), the broadcast address.
RESERVED_ADDRESSES = 3
# A node's probes, a sender and a receiver, with which a run finds out what the machine can carry.
PROBES = 2


def ranges(scenario: Scenario) -> Iterator[tuple[str, Path, IPv4Network | IPv6Network]]:
    """Yield each range of pods' addresses, with its cluster and the path to it."""
    for name, cluster in scenario.clusters.items():
        at: Path = ("clusters", name)
        if cluster.pod_cidr is not None:
            yield name, (*at, "pod_cidr"), cluster.pod_cidr
        for index, entry in enumerate(cluster.pod_cidrs or ()):
            yield name, (*at, "pod_cidrs", index, "cidr"), entry.cidr
            if entry.ipv6 is not None:
                yield name, (*at, "pod_cidrs", index, "ipv6", "cidr"), entry.ipv6.cidr


def _forms(scenario: Scenario) -> Iterator[Fault]:
    """A cluster says one range and a size, or ranges that have theirs."""
    for name, cluster in scenario.clusters.items():
        at: Path = ("clusters", name)
        if cluster.pod_cidr is None and cluster.pod_cidrs is None:
            yield Fault((*at, "pod_cidr"), "this field is required, or pod_cidrs")
        if cluster.pod_cidrs is None:
            continue
        if cluster.pod_cidr is not None:
            yield Fault((*at, "pod_cidr"), "pod_cidrs says where the pods are: keep one of the two")
        elif cluster.node_prefix is not None:
            yield Fault((*at, "node_prefix"), "each of pod_cidrs has its mask: remove this")


def _entries(scenario: Scenario) -> Iterator[Fault]:
    for name, cluster in scenario.clusters.items():
        called: dict[str, int] = {}
        for index, entry in enumerate(cluster.pod_cidrs or ()):
            at: Path = ("clusters", name, "pod_cidrs", index)
            yield from (Fault((*at, *field), what) for field, what in blocks.problems(entry))
            first = called.setdefault(entry.name.lower(), index)
            if first != index:
                yield Fault((*at, "name"), f"the name is taken by {render_path((*at[:-1], first))}")


def _families(scenario: Scenario) -> Iterator[Fault]:
    """Ranges of a cluster agree where one of them has two families."""
    for name, cluster in scenario.clusters.items():
        if cluster.pod_cidrs is None or not _is_sound(scenario, cluster):
            continue
        configs = blocks.configs(cluster)
        at = {config.name: ("clusters", name, "pod_cidrs", index) for index, config in enumerate(configs)}
        island = bool(networks.of(cluster).overhead)
        for config, (reason, what) in checks.disagreements(configs, island=island).items():
            yield Fault((*at[config], "ipv6" if reason == checks.MIXED else "cidr"), what)


def _labels(scenario: Scenario) -> Iterator[Fault]:
    for name, node in scenario.nodes.items():
        for key, value in blocks.added_labels(scenario, name).items():
            if key in (node.labels or {}):
                yield Fault(("nodes", name, "labels", key), f"every node has this label by itself: {value}")


def _sizes(scenario: Scenario) -> Iterator[Fault]:
    """A range has more than one subnet, and one for each node."""
    for name, cluster in scenario.clusters.items():
        if cluster.pod_cidr is None or cluster.node_prefix is None:
            continue
        if cluster.node_prefix <= cluster.pod_cidr.prefixlen:
            yield Fault(
                ("clusters", name, "node_prefix"),
                f"a node's /{cluster.node_prefix} does not fit the cluster's {cluster.pod_cidr}; "
                f"it must be longer than /{cluster.pod_cidr.prefixlen}",
            )
        elif len(cluster.nodes) > 2 ** (cluster.node_prefix - cluster.pod_cidr.prefixlen):
            yield Fault(
                ("clusters", name, "pod_cidr"),
                f"{cluster.pod_cidr} has no /{cluster.node_prefix} for each of {len(cluster.nodes)} nodes",
            )


def _shares(scenario: Scenario) -> Iterator[Fault]:
    """Every node has a block, and every worker one that is large enough for its pods."""
    counts = Counter((pod.cluster, pod.node) for pod in scenario.pods.values())
    for name, cluster in scenario.clusters.items():
        if not _is_sound(scenario, cluster):
            continue
        found = blocks.allocate(scenario, cluster)
        lacking = {node: why for node, why in found.refused.items() if not _waits(scenario, cluster, node)}
        for node, why in list(lacking.items())[:1]:
            words = f"{len(lacking)} of {len(cluster.nodes)} nodes get no block; {node!r}: {why}"
            if _may_wait(cluster, node):
                words += f"; or let it wait for one: nodes.{node}.expect: unassigned"
            yield Fault(("clusters", name, "pod_cidrs"), words)
        for node, block in found.given.items():
            room = max(block.num_addresses - RESERVED_ADDRESSES - PROBES, 0)
            pods = counts[name, node]
            if pods > room:
                at = _at_size(cluster, found.configs[node])
                words = f"a /{block.prefixlen} has room for {room} pods; {node!r} is to run {pods}"
                yield Fault(("clusters", name, *at), words)


def _may_wait(cluster: Cluster, node: str) -> bool:
    """Tell whether a cluster can do without a node: it cannot without its master, or who reflects routes."""
    return node in cluster.workers and not (cluster.bgp and cluster.bgp.route_reflector == node)


def _waits(scenario: Scenario, cluster: Cluster, node: str) -> bool:
    return scenario.nodes[node].expect is not None and _may_wait(cluster, node)


def _waiting(scenario: Scenario) -> Iterator[Fault]:
    """Who is said to wait for a block does wait for one, and runs no pods meanwhile."""
    waiting = [name for name, node in scenario.nodes.items() if node.expect is not None]
    if not waiting or not all(_is_sound(scenario, cluster) for cluster in scenario.clusters.values()):
        return
    found = {name: blocks.allocate(scenario, cluster) for name, cluster in scenario.clusters.items()}
    for node in waiting:
        if not any(node in one.refused for one in found.values()):
            given = {name: one.given[node] for name, one in found.items() if node in one.given}
            listed = " and ".join(f"{block} of cluster {name!r}" for name, block in given.items())
            words = f"it gets {listed or 'nothing, as a node of no cluster'}: remove this"
            yield Fault(("nodes", node, "expect"), words)
    for name, pod in scenario.pods.items():
        if pod.cluster in found and pod.node in found[pod.cluster].refused:
            words = f"{pod.node!r} gets no block of cluster {pod.cluster!r}, and runs no pods without one"
            yield Fault(("pods", name, "node"), words)


def _is_sound(scenario: Scenario, cluster: Cluster) -> bool:
    """Tell whether a cluster's nodes can be given blocks; if not, others say why."""
    nodes_exist = all(node in scenario.nodes for node in cluster.nodes)
    if cluster.pod_cidrs is None:
        own, size = cluster.pod_cidr, cluster.node_prefix
        return nodes_exist and own is not None and size is not None and size >= own.prefixlen
    return nodes_exist and not any(found for entry in cluster.pod_cidrs for found in blocks.problems(entry))


def _at_size(cluster: Cluster, config: str) -> Path:
    """Return where a cluster says how large a config's blocks are."""
    entries = enumerate(cluster.pod_cidrs or ())
    found: list[Path] = [("pod_cidrs", at, "mask") for at, one in entries if one.name.lower() == config]
    return found[0] if found else ("node_prefix",)


def _flannels(scenario: Scenario) -> Iterator[Fault]:
    """The one network around all ranges, which is all that flannel knows, has nothing but the cluster's pods.

    Where it had, packets to others would be taken for pods'.
    """
    for name, cluster in scenario.clusters.items():
        own = blocks.together(cluster.pod_networks)
        if len(own) < 2 or not networks.of(cluster).knows_one_network:
            continue
        network = blocks.around(own)
        for at, other in beside(scenario, name):
            if isinstance(other, IPv4Network) and network.overlaps(other):
                ranges = " and ".join(map(str, own))
                yield Fault(
                    ("clusters", name, "pod_cidrs"),
                    f"flannel's network, the smallest around {ranges}, is {network} and overlaps "
                    f"{render_path(at)} {other}; choose ranges closer together, or backend bgp",
                )
                break


def beside(scenario: Scenario, name: str) -> Iterator[tuple[Path, IPv4Network | IPv6Network]]:
    """Yield the networks that a cluster's nodes have besides its own."""
    yield ("underlay", "cidr"), scenario.underlay.cidr
    nodes = set(scenario.clusters[name].nodes)
    if any(one.node in nodes for one in scenario.containers.values()):
        yield ("container_cidr",), scenario.container_cidr
    for segment, one in scenario.segments.items():
        if nodes.intersection(one.nodes):
            yield ("segments", segment, "cidr"), one.cidr
    for other, at, network in ranges(scenario):
        shared = other != name and nodes.intersection(scenario.clusters[other].nodes)
        if shared:
            yield at, network


RULES = (_forms, _entries, _families, _labels, _sizes, _shares, _waiting, _flannels)
