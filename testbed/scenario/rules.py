"""How the fields of a scenario must agree: names that exist, pods on their clusters, networks apart.

Each rule yields faults: the path to the field at fault and what would be right. Rules that need names to
exist only look at those that do, so one wrong name gives one fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network

from testbed.scenario import enforcements, links, networks, ranges
from testbed.scenario.addressing import Addressing
from testbed.scenario.faults import Fault, Path, listed, render_path
from testbed.scenario.frames import payload_bytes
from testbed.scenario.model import Requests, Scenario, Traffic, Transfer, Zone
from testbed.scenario.quantities import format_rate

# Addresses a pod never gets: the subnet's own, the gateway's (paper, section 3.3.1), the broadcast address.
RESERVED_ADDRESSES = 3
# A node's probes, a sender and a receiver, with which a run finds out what the machine can carry.
PROBES = 2
# What the plugin takes for a promise: less is surely a slip of the unit, more no link carries.
LOWEST_RATE, HIGHEST_RATE = 10**3, 10**12
# A cluster's bridge is called cni-<name>, and Linux interface names have 15 characters (IFNAMSIZ - 1).
LONGEST_CLUSTER_NAME = 11
LONGEST_DELAY = 1.0  # of a trunk, seconds: once round the earth is 0.2 in fibre
# Exchanges of one kind of requests that are kept, each with its times: an analysis takes 300 MB for them.
MOST_EXCHANGES = 1_000_000


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
        _pods,
        _subnets,
        _ranges,
        _containers,
        _names,
        _traffic,
        _disturbances,
        _schedules,
        _requests,
        *_added,
    )
    return [fault for rule in rules for fault in rule(scenario)]


def _unknown(kind: str, name: str, known: Collection[str]) -> str:
    """Say that there is no such name; a kind may be two, as in ``pod or container``."""
    return f"no {kind} {name!r} ({kind.replace(' or ', 's or ')}s: {listed(known)})"


def _clusters(scenario: Scenario) -> Iterator[Fault]:
    for name, cluster in scenario.clusters.items():
        at: Path = ("clusters", name)
        if len(name) > LONGEST_CLUSTER_NAME:
            yield Fault(at, f"a cluster's name has at most {LONGEST_CLUSTER_NAME} characters")
        if cluster.master not in scenario.nodes:
            yield Fault((*at, "master"), _unknown("node", cluster.master, scenario.nodes))
        named = {cluster.master}
        for index, worker in enumerate(cluster.workers):
            if worker not in scenario.nodes:
                yield Fault((*at, "workers", index), _unknown("node", worker, scenario.nodes))
            elif worker in named:
                yield Fault((*at, "workers", index), f"{worker!r} is named twice in this cluster")
            named.add(worker)
        if cluster.node_prefix <= cluster.pod_cidr.prefixlen:
            yield Fault(
                (*at, "node_prefix"),
                f"a node's /{cluster.node_prefix} does not fit the cluster's {cluster.pod_cidr}; "
                f"it must be longer than /{cluster.pod_cidr.prefixlen}",
            )
        elif len(cluster.nodes) > 2 ** (cluster.node_prefix - cluster.pod_cidr.prefixlen):
            yield Fault(
                (*at, "pod_cidr"),
                f"{cluster.pod_cidr} has no /{cluster.node_prefix} for each of {len(cluster.nodes)} nodes",
            )
    yield from _settings(scenario)
    yield from _overlays(scenario)


def _settings(scenario: Scenario) -> Iterator[Fault]:
    """What only one kind of network has a use for is said of clusters of that kind."""
    for name, cluster in scenario.clusters.items():
        said = {"resolve": cluster.resolve, "bgp": cluster.bgp}
        for field, value in said.items():
            if value is not None and field not in networks.of(cluster).settings():
                words = f"backend {cluster.backend} has no use for these settings"
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
            yield Fault(at, f"there are zones, so every node is in one (zones: {listed(scenario.zones)})")
        elif node.zone is not None and node.zone not in scenario.zones:
            yield Fault(at, _unknown("zone", node.zone, scenario.zones))
    inhabited = {node.zone for node in scenario.nodes.values()}
    for name, zone in scenario.zones.items():
        if name not in inhabited:
            yield Fault(("zones", name), f"no node is in it; write zone: {name} at one, or leave it out")
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
        yield Fault((*at, "reorder"), "only what is delayed can be overtaken; give it a delay")


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
    rates += [((*at, "rate"), traffic.rate) for at, traffic in enumerated(scenario)]
    for at, rate in rates:
        if rate is not None and rate > HIGHEST_RATE:
            yield Fault(at, f"{format_rate(rate)} is more than 1T bits per second")


def _shaping(scenario: Scenario) -> Iterator[Fault]:
    shaping = scenario.shaping
    if shaping is None:
        return
    if scenario.kept_by != enforcements.UNDESCRIBED:
        yield Fault(("shaping",), "shaping at a place is measured by itself: write enforcement: none")
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
    networks: list[tuple[Path, IPv4Network]] = [(("underlay", "cidr"), scenario.underlay.cidr)]
    networks += [(("clusters", name, "pod_cidr"), c.pod_cidr) for name, c in scenario.clusters.items()]
    networks += [(("container_cidr",), scenario.container_cidr)]
    for first, second in _overlapping([network for _, network in networks]):
        (at, a), (later, b) = networks[first], networks[second]
        yield Fault(later, f"{b} overlaps {render_path(at)} {a}")
    if scenario.underlay.cidr.num_addresses - RESERVED_ADDRESSES < len(scenario.nodes):
        yield Fault(("underlay", "cidr"), f"{scenario.underlay.cidr} cannot hold {len(scenario.nodes)} nodes")


def _overlapping(networks: list[IPv4Network]) -> list[tuple[int, int]]:
    """Return by their indices which networks overlap: every one that does, but not with all others.

    Two that overlap are one within the other. So in the order of their addresses, the larger first, each can
    only be within one that has not ended yet.
    """
    pairs = []
    around: list[int] = []
    for index in sorted(
        range(len(networks)), key=lambda i: (networks[i].network_address, networks[i].prefixlen)
    ):
        while around and networks[around[-1]].broadcast_address < networks[index].network_address:
            around.pop()
        if around:
            pairs.append((min(around[-1], index), max(around[-1], index)))
        around.append(index)
    return sorted(pairs, key=lambda pair: pair[1])


def _pods(scenario: Scenario) -> Iterator[Fault]:
    workers = {name: set(cluster.workers) for name, cluster in scenario.clusters.items()}
    for name, pod in scenario.pods.items():
        at: Path = ("pods", name)
        cluster = scenario.clusters.get(pod.cluster)
        if pod.node not in scenario.nodes:
            yield Fault((*at, "node"), _unknown("node", pod.node, scenario.nodes))
        if cluster is None:
            yield Fault((*at, "cluster"), _unknown("cluster", pod.cluster, scenario.clusters))
        elif pod.node in scenario.nodes and pod.node not in workers[pod.cluster]:
            yield Fault(
                (*at, "node"),
                f"{pod.node!r} is no worker of cluster {pod.cluster!r} (workers: {listed(cluster.workers)})",
            )
        for field, rate in (("guarantee", pod.guarantee), ("ceiling", pod.ceiling)):
            if rate is not None and not LOWEST_RATE <= rate <= HIGHEST_RATE:
                yield Fault((*at, field), f"{format_rate(rate)} is not between 1k and 1T bits per second")
        if pod.guarantee and pod.ceiling and pod.ceiling < pod.guarantee:
            yield Fault((*at, "ceiling"), "a ceiling below the guarantee would break the promise")


def _subnets(scenario: Scenario) -> Iterator[Fault]:
    counts = Counter((pod.cluster, pod.node) for pod in scenario.pods.values())
    for name, cluster in scenario.clusters.items():
        room = 2 ** (32 - cluster.node_prefix) - RESERVED_ADDRESSES - PROBES
        for node in cluster.workers:
            pods = counts[name, node]
            if pods > room:
                yield Fault(
                    ("clusters", name, "node_prefix"),
                    f"a /{cluster.node_prefix} has room for {room} pods; {node!r} is to run {pods}",
                )


def _ranges(scenario: Scenario) -> Iterator[Fault]:
    """Pods with addresses of the underlay have its upper half, and nodes the lower one."""
    if not enforcements.of(scenario).on_underlay:
        return
    at, underlay = ("underlay", "cidr"), scenario.underlay.cidr
    addressing = Addressing(scenario)
    first = ranges.first_of_pods(underlay)
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
            yield Fault(("containers", name, "node"), _unknown("node", container.node, scenario.nodes))


def _names(scenario: Scenario) -> Iterator[Fault]:
    seen: dict[str, Path] = {}
    for group in ("pods", "containers"):
        for name in getattr(scenario, group):
            at: Path = (group, name)
            # Kubernetes knows small letters only, so A-1 and a-1 would be one pod.
            if name.lower() in seen:
                yield Fault(at, f"the name is taken by {render_path(seen[name.lower()])}")
            seen.setdefault(name.lower(), at)


def enumerated(scenario: Scenario) -> Iterator[tuple[Path, Traffic]]:
    """Return all traffic, flows before disturbances, each with the path to it."""
    for group in ("flows", "disturbances"):
        for index, traffic in enumerate(getattr(scenario, group)):
            yield (group, index), traffic


def transfers(scenario: Scenario) -> Iterator[tuple[Path, Transfer]]:
    """Return all that is sent, the traffic before the requests, each with the path to it."""
    yield from enumerated(scenario)
    for index, requests in enumerate(scenario.requests):
        yield ("requests", index), requests


def _traffic(scenario: Scenario) -> Iterator[Fault]:
    if not scenario.measured:
        yield Fault(("flows",), "there is nothing to measure: write flows, requests, or both")
    labels: dict[str, Path] = {}
    kinds = {"flows": "pod", "disturbances": "pod or container", "requests": "pod"}
    # As keys of a dictionary: in order, and found at once.
    anything = {**scenario.pods, **scenario.containers}.keys()
    known = {"flows": scenario.pods.keys(), "disturbances": anything, "requests": scenario.pods.keys()}
    for at, transfer in transfers(scenario):
        group = str(at[0])
        ends = known[group]
        for field, end in (("from", transfer.source), ("to", transfer.destination)):
            if end not in ends:
                yield Fault((*at, field), _unknown(kinds[group], end, ends))
        if transfer.source == transfer.destination:
            yield Fault((*at, "to"), f"{transfer.destination!r} would send to itself")
        elif transfer.source in ends and transfer.destination in ends:
            yield from _reachable(scenario, at, transfer)
        if transfer.label in labels:
            taken = render_path(labels[transfer.label])
            yield Fault((*at, "name"), f"{transfer.label!r} is taken by {taken}")
        labels.setdefault(transfer.label, at)
    for at, traffic in enumerated(scenario):
        if traffic.size is not None:
            yield from _size(scenario, at, traffic, traffic.size)
    for index, flow in enumerate(scenario.flows):
        if flow.protocol == "udp" and flow.rate is None:
            yield Fault(("flows", index, "rate"), "UDP needs the load to offer: a rate such as 1G")


def _size(scenario: Scenario, at: Path, traffic: Traffic, size: int) -> Iterator[Fault]:
    """A datagram is one packet, and what TCP puts into one nobody can say."""
    pod = scenario.pods.get(traffic.source)
    cluster = scenario.clusters.get(pod.cluster) if pod else None
    if traffic.protocol != "udp":
        yield Fault((*at, "size"), "only UDP's packets have a size of their own")
    elif pod is not None and cluster is not None:
        most = payload_bytes(networks.pod_mtu(scenario, pod.cluster), "udp")
        if size > most:
            yield Fault((*at, "size"), f"{size} bytes do not fit one packet; at most {most}")


def _reachable(scenario: Scenario, at: Path, traffic: Transfer) -> Iterator[Fault]:
    """Pods talk within their cluster, containers to the published ports of containers on other nodes."""
    source, destination = scenario.pods.get(traffic.source), scenario.pods.get(traffic.destination)
    if source and destination:
        if source.cluster != destination.cluster:
            yield Fault(
                (*at, "to"),
                f"{traffic.destination!r} is in cluster {destination.cluster!r}, "
                f"{traffic.source!r} in {source.cluster!r}",
            )
    elif source or destination:
        yield Fault((*at, "to"), "a pod and a container have no network in common")


def _disturbances(scenario: Scenario) -> Iterator[Fault]:
    if not scenario.measured:
        return
    begin, end = min(one.start for one in scenario.measured), scenario.duration
    for index, disturbance in enumerate(scenario.disturbances):
        if disturbance.start < begin or disturbance.end > end:
            yield Fault(
                ("disturbances", index),
                f"{disturbance.start:g} s to {disturbance.end:g} s is outside the run "
                f"({begin:g} s to {end:g} s); change start or duration",
            )


def _schedules(scenario: Scenario) -> Iterator[Fault]:
    measurement = scenario.measurement
    for index, flow in enumerate(scenario.flows):
        if flow.duration < measurement.warm_up + 5 * measurement.interval:
            yield Fault(
                ("flows", index, "duration"),
                f"{flow.duration:g} s leave no five samples after the warm-up of {measurement.warm_up:g} s",
            )
    for earlier, index in _simultaneous(scenario):
        yield Fault(
            ("flows", index, "from"),
            f"{scenario.flows[index].source!r} already sends flows[{earlier}] then, and its guarantee is one "
            "for all it sends; use parallel, or another pod",
        )


def _requests(scenario: Scenario) -> Iterator[Fault]:
    for index, requests in enumerate(scenario.requests):
        at: Path = ("requests", index)
        if requests.duration <= scenario.measurement.warm_up:
            words = f"{requests.duration:g} s end within the warm-up of {scenario.measurement.warm_up:g} s"
            yield Fault((*at, "duration"), words)
        if requests.count > MOST_EXCHANGES:
            words = f"{requests.count:,} exchanges are more than the {MOST_EXCHANGES:,} that are kept"
            yield Fault((*at, "rate"), words)
        yield from _datagrams(scenario, at, requests)
        for flow_index, flow in enumerate(scenario.flows):
            if _takes_all(scenario, flow, requests):
                yield Fault(
                    (*at, "from"),
                    f"{requests.source!r} sends flows[{flow_index}] then, which takes all of its guarantee; "
                    "give that a rate, or use another pod",
                )


def _datagrams(scenario: Scenario, at: Path, requests: Requests) -> Iterator[Fault]:
    """A message by UDP is one packet: of several, the loss of one would be that of all."""
    pod = scenario.pods.get(requests.source)
    cluster = scenario.clusters.get(pod.cluster) if pod else None
    if requests.protocol != "udp" or pod is None or cluster is None:
        return
    most = payload_bytes(networks.pod_mtu(scenario, pod.cluster), "udp")
    for field, size in (("size", requests.size), ("answer", requests.answer)):
        if size > most:
            yield Fault((*at, field), f"{size} bytes do not fit one packet; at most {most}")


def _takes_all(scenario: Scenario, flow: Traffic, requests: Requests) -> bool:
    """Tell whether a flow takes all that was promised to the sender of requests, at the same time."""
    return (
        flow.source == requests.source
        and flow.rate is None
        and scenario.guarantee_of(flow) is not None
        and flow.start < requests.end
        and requests.start < flow.end
    )


def _simultaneous(scenario: Scenario) -> list[tuple[int, int]]:
    """Return by their indices which flows of one guarantee are sent at once: all, but not with all others."""
    flows = scenario.flows
    pairs = []
    last: dict[str, int] = {}  # by source, of those that have begun the one that ends last
    for index in sorted(range(len(flows)), key=lambda i: flows[i].start):
        flow = flows[index]
        if scenario.guarantee_of(flow) is None:
            continue
        before = last.get(flow.source)
        if before is not None and flow.start < flows[before].end:
            pairs.append((min(before, index), max(before, index)))
        if before is None or flow.end > flows[before].end:
            last[flow.source] = index
    return sorted(pairs, key=lambda pair: pair[1])
