"""How what a scenario sends must agree: ends that exist and reach each other, in time, in one packet each.

Each rule yields faults, as those of everything else do.
"""

from __future__ import annotations

from collections.abc import Iterator

from testbed.scenario import networks
from testbed.scenario.faults import Fault, Path, render_path, unknown
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
        if transfer.destination in scenario.services:
            yield from _served(scenario, at, transfer)
        elif transfer.destination not in ends:
            others = " or service" if scenario.services else ""
            found = {**dict.fromkeys(ends), **scenario.services}.keys()
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
    service, sender = scenario.services[transfer.destination], scenario.pods.get(transfer.source)
    name = transfer.destination
    if transfer.source in scenario.containers:
        yield Fault((*at, "to"), f"a container does not reach service {name!r}, which is for pods")
    elif sender and sender.cluster != service.cluster and service.cluster in scenario.clusters:
        words = f"{name!r} is in cluster {service.cluster!r}, {transfer.source!r} in {sender.cluster!r}"
        yield Fault((*at, "to"), words)
    if isinstance(transfer, Traffic) and len(service.pods) > 1:
        words = f"service {name!r} has {len(service.pods)} pods, and a flow's connections may get different"
        yield Fault((*at, "to"), f"{words} ones: send it to a pod, or to a service of one; or make requests")


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
RULES = (_traffic, _disturbances, _schedules, _requests)
