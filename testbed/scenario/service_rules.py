"""How what a scenario says of services must agree: their pods, addresses and ports, and who asks them.

Each rule yields faults, as those of everything else do. What is only worth knowing is a warning: of hints
that are not followed, as Kubernetes does not follow them.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address

from edge.services.explanation import explain
from edge.services.hints import OFF, Safeguard
from testbed.scenario import enforcements, service_hints, services, traffic_rules
from testbed.scenario.addressing import Addressing
from testbed.scenario.faults import Fault, Path, listed, render_path, unknown
from testbed.scenario.model import Scenario, Service, Transfer

LAST_PORT = 65_535
API_NAME = "kubernetes"


def _pods(scenario: Scenario) -> Iterator[Fault]:
    """The endpoints of a service are pods of its cluster, each once."""
    pods: dict[str, list[str]] = {}
    for pod, one in scenario.pods.items():
        pods.setdefault(one.cluster, []).append(pod)
    for name, service in scenario.services.items():
        at: Path = ("services", name)
        if service.cluster not in scenario.clusters:
            yield Fault((*at, "cluster"), unknown("cluster", service.cluster, scenario.clusters))
            continue
        own = pods.get(service.cluster, [])
        named: set[str] = set()
        for index, pod in enumerate(service.pods):
            where = (*at, "pods", index)
            if pod not in scenario.pods:
                yield Fault(where, unknown("pod", pod, own))
            elif scenario.pods[pod].cluster != service.cluster:
                words = f"{pod!r} is in cluster {scenario.pods[pod].cluster!r}, not in {service.cluster!r}"
                yield Fault(where, f"{words} (pods: {listed(own)})")
            elif pod in named:
                yield Fault(where, f"{pod!r} is named twice in this service")
            named.add(pod)


def _names(scenario: Scenario) -> Iterator[Fault]:
    """A service's name is one of DNS, and the API of its cluster has one, too (RFC 1035, section 2.3.1)."""
    for name in scenario.services:
        if name.lower() == API_NAME:
            yield Fault(("services", name), "so the service of a cluster's API is called: take another name")
        elif not name[0].isalpha():
            yield Fault(("services", name), "a service's name must begin with a letter")


def _addresses(scenario: Scenario) -> Iterator[Fault]:
    """Each service has an address and ports of its own, in a range that its cluster has for itself."""
    every = services.every(scenario)
    known = {name: one for name, one in every.items() if one.cluster in scenario.clusters}
    free = services.free_ranges(scenario) if known else {}
    within = {cluster: found for cluster, found in free.items() if found is not None}
    lacking = dict.fromkeys(one.cluster for one in known.values() if one.cluster not in within)
    for cluster in lacking:
        words = f"no /{services.USUAL_PREFIX} from {services.FIRST} on is free for its services: set a range"
        yield Fault(("clusters", cluster, "service_cidr"), words)
    for name, service in known.items():
        if service.cluster not in lacking and service.address is not None:
            yield from _address(("services", name, "address"), service.address, within, service)
    if len(known) == len(every) and not lacking:
        try:
            yield from _ports(scenario, services.addresses(scenario, within))
        except LookupError as error:
            yield Fault(("services",), f"{error}: set a larger service_cidr, or addresses")


def _address(at: Path, address: IPv4Address, within: services.Ranges, service: Service) -> Iterator[Fault]:
    network = within[service.cluster]
    if address not in network:
        words = f"{address} is not in {network}, where cluster {service.cluster!r} has its services"
        yield Fault(at, f"{words}; set its service_cidr, or another address")
    elif address in (network.network_address, network.broadcast_address):
        end = "first" if address == network.network_address else "last"
        yield Fault(at, f"{address} is the {end} address of {network}, which no service has")
    elif address == network[services.API]:
        yield Fault(at, f"{address} is the address of the cluster's API; take one from {network[2]} on")
    elif address == services.of_names(network):
        words = f"{address} is where the cluster's pods ask for names of services"
        yield Fault(at, f"{words}; take another, or none: {next(services.usable(network))} is the first")


def _ports(scenario: Scenario, addresses: dict[str, IPv4Address]) -> Iterator[Fault]:
    taken: dict[tuple[IPv4Address, int], str] = {}
    for name, transfers in services.sent(scenario).items():
        first = scenario.services[name].port
        last = first + max(0, len(transfers) - 1)
        at: Path = ("services", name, "port")
        if last > LAST_PORT:
            words = f"{len(transfers)} transfers need ports from {first} on, and {LAST_PORT} is the last"
            yield Fault(at, f"{words}; at most {LAST_PORT - len(transfers) + 1}")
            continue
        own = [(addresses[name], port) for port in range(first, last + 1)]
        earlier = next((one for one in own if one in taken), None)
        if earlier is not None:
            path = render_path(("services", taken[earlier]))
            yield Fault(at, f"{path} has port {earlier[1]} of {earlier[0]} already; take another, or address")
        taken |= {one: name for one in own if one not in taken}


def _network(scenario: Scenario) -> Iterator[Fault]:
    """What is sent to a service passes its sender's node, which translates it."""
    if enforcements.of(scenario).on_underlay:
        words = (
            f"network {scenario.kept_by} gives pods addresses of the underlay, past what translates on nodes"
        )
        for field in ("services", "connections"):
            if getattr(scenario, field):
                yield Fault((field,), f"{words}; take another network, or no {field}")


def warnings(scenario: Scenario) -> Iterator[Fault]:
    """Yield why hints of a scenario without faults are not followed, and who asks in vain; and a remedy."""
    for where, transfer in traffic_rules.transfers(scenario):
        yield from _in_vain((*where, "to"), scenario, transfer)
    addressing = Addressing(scenario)
    for name, service in scenario.services.items():
        if service.hints == OFF:
            continue
        at: Path = ("services", name, "hints")
        if service.policy == service_hints.LOCAL:
            yield Fault(at, "ignored, because policy is Local: use policy: Cluster, or hints: off")
            continue
        # Which addresses they have makes no difference.
        names = {pod: pod for pod in service.pods}
        endpoints = service_hints.slice_of(addressing, name, names, names)
        result = service_hints.hinted(addressing, name, endpoints)
        if result.why_not is not None:
            remedy = _remedy(addressing, name, result.why_not.safeguard)
            yield Fault(at, f"all nodes use all endpoints: {result.why_not}; {remedy}")


def _in_vain(at: Path, scenario: Scenario, transfer: Transfer) -> Iterator[Fault]:
    """A Local service refuses who is where none of its endpoints is."""
    service = scenario.services.get(transfer.destination)
    if service is None or service.policy != service_hints.LOCAL:
        return
    node = scenario.node_of(transfer.source)
    if all(scenario.node_of(pod) != node for pod in service.pods):
        words = f"{transfer.destination!r} is Local and has no pod on {node}, where {transfer.source!r} is"
        yield Fault(at, f"{words}: all is refused; use policy: Cluster, or a pod there")


def warned(scenario: Scenario) -> list[str]:
    """Return the same in words."""
    return [f"{render_path(path)}: {text}" for path, text in warnings(scenario)]


def _remedy(addressing: Addressing, name: str, safeguard: Safeguard) -> str:
    """Return what would let a service have hints."""
    if safeguard in (Safeguard.NODE_INFORMATION, Safeguard.NO_ZONE):
        return "set zone of every worker, and cpus of every one or of none"
    if safeguard is Safeguard.ONE_ZONE:
        return "use workers of two zones, or hints: off"
    scenario = addressing.scenario
    service = scenario.services[name]
    names = {pod: pod for pod in service.pods}
    explained = explain(
        service.hints,
        service_hints.nodes(addressing, service.cluster),
        [service_hints.slice_of(addressing, name, names, names)],
        service_hints.delays(scenario),
    )
    return "there would be some " + (
        explained.remedies[0].what if explained.remedies else "with hints: close"
    )


# In the order of a scenario's fields.
RULES = (_names, _pods, _addresses, _network)
