"""How what a scenario sends must agree: ends that exist and reach each other, in time, in one packet each.

Each rule yields faults, as those of everything else do.
"""

from __future__ import annotations

from collections.abc import Iterator

from testbed.scenario import connections, networks
from testbed.scenario.devices import Connection
from testbed.scenario.faults import Fault, Path, listed, render_path, unknown
from testbed.scenario.frames import payload_bytes
from testbed.scenario.model import Requests, Scenario, Traffic, Transfer

# Exchanges of one kind of requests that are kept, each with its times: an analysis takes 300 MB for them.
MOST_EXCHANGES = 1_000_000


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
        if transfer.source not in ends:
            yield Fault((*at, "from"), unknown(kinds[group], transfer.source, ends))
        if transfer.component is not None and transfer.destination not in scenario.connections:
            words = f"only devices have components, and {transfer.destination!r} is no connection to one"
            yield Fault((*at, "component"), f"{words} (connections: {listed(scenario.connections)})")
        if transfer.destination in scenario.connections:
            yield from _to_device(scenario, at, transfer)
        elif transfer.destination in scenario.services:
            yield from _served(scenario, at, transfer)
        elif transfer.destination not in ends:
            others = " or service" if scenario.services else ""
            others += " or connection" if scenario.connections else ""
            found = {**dict.fromkeys(ends), **scenario.services, **scenario.connections}.keys()
            yield Fault((*at, "to"), unknown(f"{kinds[group]}{others}", transfer.destination, found))
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
            yield Fault(("flows", index, "rate"), "UDP requires a rate, such as 1G")


def _size(scenario: Scenario, at: Path, traffic: Traffic, size: int) -> Iterator[Fault]:
    """A datagram is one packet, and what TCP puts into one nobody can say."""
    if traffic.protocol != "udp":
        yield Fault((*at, "size"), "must not be set unless protocol is udp")
    else:
        yield from _one_packet(scenario, (*at, "size"), traffic, size)


def _one_packet(scenario: Scenario, at: Path, transfer: Transfer, size: int) -> Iterator[Fault]:
    """A message by UDP is one packet: of several, the loss of one would be that of all."""
    pod = scenario.pods.get(transfer.source)
    if pod is None or pod.cluster not in scenario.clusters:
        return
    most = payload_bytes(networks.pod_mtu(scenario, pod.cluster), "udp")
    if size > most:
        yield Fault(at, f"{size} bytes do not fit one packet; at most {most}")


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


def _served(scenario: Scenario, at: Path, transfer: Transfer) -> Iterator[Fault]:
    """Pods ask services of their cluster; a flow has several connections, which must have one endpoint."""
    service, name = scenario.services[transfer.destination], transfer.destination
    yield from _asked(scenario, at, transfer, f"service {name!r}", service.cluster)
    if isinstance(transfer, Traffic) and len(service.pods) > 1:
        words = f"service {name!r} has {len(service.pods)} pods, and a flow's connections may get different"
        yield Fault((*at, "to"), f"{words} ones: send it to a pod, or to a service of one; or make requests")


def _asked(scenario: Scenario, at: Path, transfer: Transfer, what: str, cluster: str) -> Iterator[Fault]:
    """Who asks a service, or a device, is a pod of its cluster."""
    sender = scenario.pods.get(transfer.source)
    if transfer.source in scenario.containers:
        yield Fault((*at, "to"), f"a container does not reach {what}, which is for pods")
    elif sender and sender.cluster != cluster and cluster in scenario.clusters:
        here, there = transfer.destination, transfer.source
        yield Fault((*at, "to"), f"{here!r} is in cluster {cluster!r}, {there!r} in {sender.cluster!r}")


def _to_device(scenario: Scenario, at: Path, transfer: Transfer) -> Iterator[Fault]:
    """What is sent to a device has a port there that the connection leads to."""
    name = transfer.destination
    connection = scenario.connections[name]
    yield from _asked(scenario, at, transfer, f"connection {name!r}", connection.cluster)
    if not connections.is_whole(scenario, connection) or not _knows(scenario, connection):
        return
    if transfer.component is not None and transfer.component not in connection.components:
        words = unknown("component", transfer.component, connection.components)
        yield Fault((*at, "component"), f"{words}, as connection {name!r} leads to these")
        return
    port = connections.port_of(scenario, transfer)
    meant = f"component {transfer.component!r}" if transfer.component else f"connection {name!r}"
    if port is None:
        words = f"{meant} has no {transfer.protocol.upper()} port"
        yield Fault((*at, "to"), f"{words}: name a component that has one, or another protocol")
        return
    led = {(one.handler.transport, one.handler.port) for one in connections.ports(scenario, name)}
    for protocol, number in connections.listened(transfer, port):
        if (protocol, number) not in led:
            words = f"a flow by UDP needs {protocol} at port {number}, too, which {meant} has not"
            yield Fault((*at, "protocol"), f"{words}: add it to the device, or take requests")


def _knows(scenario: Scenario, connection: Connection) -> bool:
    return set(connection.components) <= scenario.devices[connection.device].components.keys()


def _receivers(scenario: Scenario) -> Iterator[Fault]:
    """At a device's port one receiver listens, which serves one sender."""
    taken: dict[tuple[str, str, int], Path] = {}
    whole = connections.whole(scenario)
    for at, transfer in transfers(scenario):
        known = whole.get(transfer.destination)
        if known is None or (port := connections.port_of(scenario, transfer)) is None:
            continue
        own = [(known.device, *one) for one in connections.listened(transfer, port)]
        earlier = next((taken[one] for one in own if one in taken), None)
        if earlier is not None:
            words = f"{render_path(earlier)} is sent to port {port} of {known.device!r} already"
            yield Fault((*at, "to"), f"{words}: choose another component")
        for one in own:
            taken.setdefault(one, at)


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
                f"{flow.duration:g} s leaves fewer than five samples after the warm-up "
                f"of {measurement.warm_up:g} s",
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
            words = f"{requests.duration:g} s ends within the warm-up of {scenario.measurement.warm_up:g} s"
            yield Fault((*at, "duration"), words)
        if requests.count > MOST_EXCHANGES:
            words = f"{requests.count:,} exchanges are more than the {MOST_EXCHANGES:,} that are kept"
            yield Fault((*at, "rate"), words)
        if requests.protocol == "udp":
            for field, size in (("size", requests.size), ("answer", requests.answer)):
                yield from _one_packet(scenario, (*at, field), requests, size)
        for flow_index, flow in enumerate(scenario.flows):
            if _takes_all(scenario, flow, requests):
                yield Fault(
                    (*at, "from"),
                    f"{requests.source!r} sends flows[{flow_index}] then, which takes all of its guarantee; "
                    "give that a rate, or use another pod",
                )


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


# In the order of a scenario's fields.
RULES = (_traffic, _receivers, _disturbances, _schedules, _requests)
