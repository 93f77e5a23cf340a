"""How the fields of a scenario must agree: names that exist, pods on their clusters, networks apart.

Each rule yields faults: the path to the field at fault and what would be right. Rules that need names to
exist only look at those that do, so one wrong name gives one fault. What is sent has rules of its own, in
``traffic_rules``, and so have pods' addresses, in ``block_rules``, services, in ``service_rules``,
devices, in ``device_rules``, and connections, in ``connection_rules``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Network

from testbed.scenario import (
    block_rules,
    connection_rules,
    device_rules,
    enforcements,
    links,
    networks,
    service_rules,
    services,
    traffic_rules,
)
from testbed.scenario.addressing import Addressing, first_of_pods
from testbed.scenario.block_rules import PROBES, RESERVED_ADDRESSES
from testbed.scenario.faults import Fault, Path, listed, render_path, unknown
from testbed.scenario.model import Scenario, Zone
from testbed.scenario.units import format_rate

# What the plugin takes for a promise: less is surely a slip of the unit, more no link carries.
LOWEST_RATE, HIGHEST_RATE = 10**3, 10**12
# A cluster's bridge is called cni-<name>, and Linux interface names have 15 characters (IFNAMSIZ - 1).
LONGEST_CLUSTER_NAME = 11
LONGEST_DELAY = 1.0  # of a trunk, seconds: once round the earth is 0.2 in fibre

Rule = Callable[[Scenario], Iterable[Fault]]

# Of those who know more of some field than a scenario does, as which names it may hold.
_added: list[Rule] = []


def add(rule: Rule) -> None:
    """Let one more rule be checked whenever a scenario is read."""
    _added.append(rule)


def faults(scenario: Scenario) -> list[Fault]:
    """Return everything in which the scenario contradicts itself, in the order of its fields."""
    rules: tuple[Rule, ...] = (
        _zones,
        _addresses,
        _enforcement,
        _rates,
        _shaping,
        _clusters,
        _networks,
        _services,
        _pods,
        *block_rules.RULES,
        _ranges,
        _containers,
        _names,
        *service_rules.RULES,
        *device_rules.RULES,
        *connection_rules.RULES,
        *traffic_rules.RULES,
        *_added,
    )
    return [fault for rule in rules for fault in rule(scenario)]


def _clusters(scenario: Scenario) -> Iterator[Fault]:
    for name, cluster in scenario.clusters.items():
        at: Path = ("clusters", name)
        if len(name) > LONGEST_CLUSTER_NAME:
            yield Fault(at, f"a cluster's name has at most {LONGEST_CLUSTER_NAME} characters")
        if cluster.master not in scenario.nodes:
            yield Fault((*at, "master"), unknown("node", cluster.master, scenario.nodes))
        named = {cluster.master}
        for index, worker in enumerate(cluster.workers):
            if worker not in scenario.nodes:
                yield Fault((*at, "workers", index), unknown("node", worker, scenario.nodes))
            elif worker in named:
                yield Fault((*at, "workers", index), f"{worker!r} is named twice in this cluster")
            named.add(worker)
    yield from _settings(scenario)
    yield from _overlays(scenario)


def _settings(scenario: Scenario) -> Iterator[Fault]:
    """What only one kind of network has a use for is said of clusters of that kind."""
    for name, cluster in scenario.clusters.items():
        for field in dict.fromkeys(field for kind in networks.KINDS.values() for field in kind.fields()):
            if getattr(cluster, field) is not None and field not in networks.of(cluster).fields():
                words = f"backend {cluster.backend} does not use these settings"
                yield Fault(("clusters", name, field), words)


def _overlays(scenario: Scenario) -> Iterator[Fault]:
    """What a network has once only, no other may have on the same node; and what each kind knows itself."""
    taken: dict[tuple[str, str], str] = {}
    for name, cluster in scenario.clusters.items():
        for once in networks.of(cluster).once(scenario, name):
            own = [(node, once.words) for node in cluster.nodes]
            earlier = next((taken[one] for one in own if one in taken), None)
            if earlier is not None:
                yield Fault(
                    ("clusters", name, *once.field),
                    f"cluster {earlier!r} shares a node and already has {once.words}",
                )
            for one in own:
                taken.setdefault(one, name)
        for field, words in networks.of(cluster).faults(scenario, name):
            yield Fault(("clusters", name, *field), words)


def _zones(scenario: Scenario) -> Iterator[Fault]:
    """With zones every node is in one, and every zone has a node."""
    for name, node in scenario.nodes.items():
        at: Path = ("nodes", name, "zone")
        if node.zone is None and scenario.zones:
            yield Fault(at, f"this field is required when there are zones (zones: {listed(scenario.zones)})")
        elif node.zone is not None and node.zone not in scenario.zones:
            yield Fault(at, unknown("zone", node.zone, scenario.zones))
    inhabited = {node.zone for node in scenario.nodes.values()}
    for name, zone in scenario.zones.items():
        if name not in inhabited:
            yield Fault(("zones", name), f"no node is in it; set zone: {name} on one, or remove this zone")
        yield from _delay(("zones", name), zone)


def _delay(at: Path, zone: Zone) -> Iterator[Fault]:
    if zone.delay > LONGEST_DELAY:
        yield Fault(
            (*at, "delay"),
            f"{zone.delay:g} s is too long: it is one way, in seconds, at most {LONGEST_DELAY:g}; "
            "five milliseconds are 0.005",
        )
    if zone.jitter > zone.delay:
        yield Fault((*at, "jitter"), f"{zone.jitter:g} s is more than the delay of {zone.delay:g} s")
    if zone.reorder and not zone.delay:
        yield Fault((*at, "reorder"), "only delayed packets can be reordered; set a delay")


def _addresses(scenario: Scenario) -> Iterator[Fault]:
    """Nodes are all numbered or none: otherwise one might be given another's address."""
    seen: dict[IPv4Address, str] = {}
    stated = [name for name, node in scenario.nodes.items() if node.address is not None]
    for name, node in scenario.nodes.items():
        at: Path = ("nodes", name, "address")
        if node.address is None:
            if stated:
                yield Fault(at, f"{stated[0]!r} has an address, so every node needs one")
        elif node.address not in scenario.underlay.cidr:
            yield Fault(at, f"{node.address} is not in underlay.cidr {scenario.underlay.cidr}")
        elif node.address in seen:
            yield Fault(at, f"{node.address} is the address of {seen[node.address]!r}")
        else:
            seen[node.address] = name


def _enforcement(scenario: Scenario) -> Iterator[Fault]:
    if enforcements.of(scenario).shares_links and (at := _without_rate(scenario)):
        yield Fault(
            at,
            f"enforcement {scenario.kept_by} shares out the nodes' links, so their rate must be known, "
            "such as 9G",
        )


def _without_rate(scenario: Scenario) -> Path | None:
    """Return where the rate of nodes' links is to be stated; None if that of each is known."""
    lacking = [node for node in scenario.nodes if links.rate_of(scenario, node) is None]
    if not lacking:
        return None
    return ("underlay", "rate") if len(lacking) == len(scenario.nodes) else ("nodes", lacking[0], "rate")


def _rates(scenario: Scenario) -> Iterator[Fault]:
    """What is offered may be as little as one likes."""
    rates: list[tuple[Path, int | None]] = [(("underlay", "rate"), scenario.underlay.rate)]
    rates += [(("zones", name, "rate"), zone.rate) for name, zone in scenario.zones.items()]
    rates += [(("nodes", name, "rate"), node.rate) for name, node in scenario.nodes.items()]
    rates += [(("segments", name, "rate"), segment.rate) for name, segment in scenario.segments.items()]
    rates += [((*at, "rate"), traffic.rate) for at, traffic in traffic_rules.enumerated(scenario)]
    for at, rate in rates:
        if rate is not None and rate > HIGHEST_RATE:
            yield Fault(at, f"{format_rate(rate)} is more than 1T bits per second")


def _shaping(scenario: Scenario) -> Iterator[Fault]:
    shaping = scenario.shaping
    if shaping is None:
        return
    if scenario.kept_by != enforcements.UNDESCRIBED:
        yield Fault(("shaping",), "shaping requires enforcement: none")
    if at := _without_rate(scenario):
        yield Fault(at, "shaping needs to know the rate of the nodes' links, such as 9G")
    if shaping.classify != "none" and shaping.at in ("bridge-veth", "eth0"):
        yield Fault(("shaping", "classify"), f"{shaping.at} belongs to one pod: nothing to tell apart")
    if shaping.classify == "inner-source" and shaping.at != "physical":
        yield Fault(("shaping", "classify"), "only the physical interface sees packets inside VXLAN")
    if shaping.at == "vtep" or shaping.classify == "inner-source":
        for name, cluster in scenario.clusters.items():
            if not networks.of(cluster).has_vtep:
                yield Fault(("shaping",), f"backend {cluster.backend} of cluster {name!r} has no VTEP")


def _networks(scenario: Scenario) -> Iterator[Fault]:
    """No two overlap, but ranges of one cluster, of which each address is given once all the same."""
    networks: list[tuple[str, Path, IPv4Network | IPv6Network]] = [
        ("", ("underlay", "cidr"), scenario.underlay.cidr),
        *block_rules.ranges(scenario),
        ("", ("container_cidr",), scenario.container_cidr),
        *_service_ranges(scenario),
        *(("", ("segments", name, "cidr"), one.cidr) for name, one in scenario.segments.items()),
    ]
    for first, second in _overlapping([network for _, _, network in networks]):
        (one, at, a), (other, later, b) = networks[first], networks[second]
        if one != other or not one:
            yield Fault(later, f"{b} overlaps {render_path(at)} {a}")
    if scenario.underlay.cidr.num_addresses - RESERVED_ADDRESSES < len(scenario.nodes):
        yield Fault(("underlay", "cidr"), f"{scenario.underlay.cidr} cannot hold {len(scenario.nodes)} nodes")


def _service_ranges(scenario: Scenario) -> Iterator[tuple[str, Path, IPv4Network]]:
    """Yield the ranges that clusters say; the others are where nobody else is."""
    for name, cluster in scenario.clusters.items():
        if cluster.service_cidr is not None:
            yield "", ("clusters", name, "service_cidr"), cluster.service_cidr


def _services(scenario: Scenario) -> Iterator[Fault]:
    for _, at, network in _service_ranges(scenario):
        if not services.SHORTEST_PREFIX <= network.prefixlen <= services.LONGEST_PREFIX:
            words = f"from /{services.SHORTEST_PREFIX} to /{services.LONGEST_PREFIX}"
            yield Fault(at, f"{network} is no range for services, which must be {words}")


def _overlapping(networks: list[IPv4Network | IPv6Network]) -> list[tuple[int, int]]:
    """Return by their indices which networks overlap: every one that does, but not with all others.

    Two that overlap are one within the other. So in the order of their addresses, the larger first, each can
    only be within one that has not ended yet.
    """
    pairs = []
    around: list[int] = []
    spans = [(one.version, int(one.network_address), -int(one.broadcast_address)) for one in networks]
    for index in sorted(range(len(networks)), key=spans.__getitem__):
        version, begin, _ = spans[index]
        while around and (spans[around[-1]][0], -spans[around[-1]][2]) < (version, begin):
            around.pop()
        if around:
            pairs.append((min(around[-1], index), max(around[-1], index)))
        around.append(index)
    return sorted(pairs, key=lambda pair: pair[1])


def _pods(scenario: Scenario) -> Iterator[Fault]:
    workers = {name: set(cluster.workers) for name, cluster in scenario.clusters.items()}
    admits_ingress = enforcements.of(scenario).admits_ingress
    for name, pod in scenario.pods.items():
        at: Path = ("pods", name)
        cluster = scenario.clusters.get(pod.cluster)
        if pod.node not in scenario.nodes:
            yield Fault((*at, "node"), unknown("node", pod.node, scenario.nodes))
        if cluster is None:
            yield Fault((*at, "cluster"), unknown("cluster", pod.cluster, scenario.clusters))
        elif pod.node in scenario.nodes and pod.node not in workers[pod.cluster]:
            yield Fault(
                (*at, "node"),
                f"{pod.node!r} is not a worker of cluster {pod.cluster!r} "
                f"(workers: {listed(cluster.workers)})",
            )
        for field in ("guarantee", "answers", "ingress", "ceiling"):
            rate = getattr(pod, field)
            if rate is not None and not LOWEST_RATE <= rate <= HIGHEST_RATE:
                yield Fault((*at, field), f"{format_rate(rate)} is not between 1k and 1T bits per second")
        if pod.ingress is not None and not admits_ingress:
            words = f"network {scenario.kept_by} promises nothing of what a pod receives"
            yield Fault((*at, "ingress"), f"{words} (those that do: {listed(enforcements.receiving())})")
        if pod.ceiling and pod.ceiling < pod.promised:
            of = "the guarantee" + (" and answers" if pod.answers else "")
            yield Fault((*at, "ceiling"), f"a ceiling below {of} would break the promise")


def _ranges(scenario: Scenario) -> Iterator[Fault]:
    """Pods with addresses of the underlay have its upper half, and nodes the lower one."""
    if not enforcements.of(scenario).on_underlay:
        return
    at, underlay = ("underlay", "cidr"), scenario.underlay.cidr
    addressing = Addressing(scenario)
    first = first_of_pods(underlay)
    for node, address in addressing.nodes.items():
        if address.ip >= first:
            words = f"network {scenario.kept_by} gives pods the addresses of {underlay} from {first} on"
            yield Fault(at, f"{words}, and {node!r} has {address.ip}")
            return
    counts = Counter((pod.cluster, pod.node) for pod in scenario.pods.values())
    for (cluster, node), pods in counts.items():
        room = addressing.pod_range(cluster, node).room - PROBES
        if room < pods:
            words = f"{underlay} has room for {max(room, 0)} of a cluster's pods on each worker"
            yield Fault(
                at,
                f"{words} in its upper half, where network {scenario.kept_by} puts them; "
                f"{node!r} is to run {pods}",
            )
            return


def _containers(scenario: Scenario) -> Iterator[Fault]:
    for name, container in scenario.containers.items():
        if container.node not in scenario.nodes:
            yield Fault(("containers", name, "node"), unknown("node", container.node, scenario.nodes))


def _names(scenario: Scenario) -> Iterator[Fault]:
    seen: dict[str, Path] = {}
    for group in ("pods", "containers", "services", "devices"):
        for name in getattr(scenario, group):
            at: Path = (group, name)
            # Kubernetes knows small letters only, so A-1 and a-1 would be one pod.
            if name.lower() in seen:
                yield Fault(at, f"the name is taken by {render_path(seen[name.lower()])}")
            seen.setdefault(name.lower(), at)
