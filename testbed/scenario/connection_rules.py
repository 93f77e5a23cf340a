"""How what a scenario says of connections must agree: with clusters, devices, gateways, names and rates.

Each rule yields faults, as those of everything else do. What is sent to connections is with all that is sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from edge.devices.kinds import MOST_NAME, PREFIX
from testbed.scenario import connections, enforcements, links
from testbed.scenario.devices import Connection
from testbed.scenario.faults import Fault, Path, listed, render_path, unknown
from testbed.scenario.model import Scenario
from testbed.scenario.units import format_rate

LOWEST_RATE = 10**3  # bits per second, as of pods' promises


def _ends(scenario: Scenario) -> Iterator[Fault]:
    """A connection leads from a cluster to components of a device, by a gateway that is a worker there."""
    for name, one in scenario.connections.items():
        at: Path = ("connections", name)
        if one.cluster not in scenario.clusters:
            yield Fault((*at, "cluster"), unknown("cluster", one.cluster, scenario.clusters))
        if one.device not in scenario.devices:
            yield Fault((*at, "device"), unknown("device", one.device, scenario.devices))
            continue
        yield from _components(scenario, (*at, "components"), one)
        if connections.is_whole(scenario, one):
            yield from _gateways(scenario, at, one)


def _components(scenario: Scenario, at: Path, one: Connection) -> Iterator[Fault]:
    known = scenario.devices[one.device].components
    for index, component in enumerate(one.components):
        if component not in known:
            yield Fault((*at, index), unknown("component", component, known))
        elif component in one.components[:index]:
            yield Fault((*at, index), f"{component!r} is named twice in this connection")


def _gateways(scenario: Scenario, at: Path, one: Connection) -> Iterator[Fault]:
    segment = scenario.devices[one.device].segment
    gateways, workers = scenario.segments[segment].nodes, scenario.clusters[one.cluster].workers
    own = [node for node in gateways if node in workers]
    if not own:
        yield Fault(
            (*at, "cluster"),
            f"no gateway of segment {segment!r}, where {one.device!r} is, is a worker of cluster "
            f"{one.cluster!r} (gateways: {listed(gateways)}; workers: {listed(workers)})",
        )
    elif one.replicas > len(own):
        words = f"each is on another gateway, and cluster {one.cluster!r} has {len(own)} of {segment!r}"
        yield Fault((*at, "replicas"), f"must be at most {len(own)}: {words} ({listed(own)})")


def _names(scenario: Scenario) -> Iterator[Fault]:
    """A connection is no other's name, to which something could be sent, nor is what is made for it."""
    groups = ("pods", "containers", "services")
    taken = {name.lower(): (group, name) for group in groups for name in getattr(scenario, group)}
    made: dict[str, list[str]] = {name: [] for name in scenario.connections}
    for pod, name in connections.of_pods(scenario).items():
        made[name].append(pod)
    for name, pods in made.items():
        at: Path = ("connections", name)
        if len(name) > MOST_NAME:
            words = (
                f"its service is {connections.service_of(name)}, which has at most {MOST_NAME + len(PREFIX)}"
            )
            yield Fault(at, f"a connection's name has at most {MOST_NAME} characters: {words}")
        if name in taken:
            yield Fault(at, f"the name is taken by {render_path(taken[name])}")
        for other in (connections.service_of(name), *pods):
            if other in taken:
                words = f"{other} is made for it, which is the name of {render_path(taken[other])}"
                yield Fault(at, f"{words}: choose another")


def _ranges(scenario: Scenario) -> Iterator[Fault]:
    """Proxy pods have addresses towards a segment that nobody else has."""
    found = connections.ranges(scenario)
    for name, one in connections.whole(scenario).items():
        if (segment := scenario.devices[one.device].segment) not in found:
            words = f"no /{connections.RANGE_PREFIX} of {connections.RANGES} is free for its proxy pods"
            yield Fault(
                ("connections", name), f"{words} at segment {segment!r}: let other ranges be elsewhere"
            )


def _promises(scenario: Scenario) -> Iterator[Fault]:
    """Promises fit the links by which they are kept, a gateway's link in a segment all of them together."""
    promised: Counter[tuple[str, str]] = Counter()
    for name, one in connections.whole(scenario).items():
        at: Path = ("connections", name, "guarantee")
        yield from _sizes(at, one)
        yield from _kept(scenario, at, one)
        segment = scenario.devices[one.device].segment
        rate, wanted = scenario.segments[segment].rate, one.guarantee.to_device or 0
        for node in scenario.gateways_of(one):
            free = None if rate is None else rate - promised[segment, node]
            if wanted and free is not None and wanted > free:
                left = f" beside the others', which leave {format_rate(free)}" if free < (rate or 0) else ""
                words = f"does not fit {format_rate(rate or 0)} of segment {segment!r} at {node!r}{left}"
                yield Fault((*at, "toDevice"), f"{format_rate(wanted)} {words}: promise less")
                break
            promised[segment, node] += wanted
            uplink, sent = links.rate_of(scenario, node), one.guarantee.from_device
            if sent is not None and uplink is not None and sent > uplink:
                words = f"is more than the {format_rate(uplink)} of the link of {node!r}"
                yield Fault((*at, "fromDevice"), f"{format_rate(sent)} {words}: promise less")
                break


def _sizes(at: Path, one: Connection) -> Iterator[Fault]:
    for field, rate in (("toDevice", one.guarantee.to_device), ("fromDevice", one.guarantee.from_device)):
        if rate is not None and rate < LOWEST_RATE:
            yield Fault((*at, field), f"{format_rate(rate)} is less than 1k bits per second")


def _kept(scenario: Scenario, at: Path, one: Connection) -> Iterator[Fault]:
    """Who keeps promises must know of it on both interfaces; and share out only a link of a known rate."""
    segment = scenario.devices[one.device].segment
    if one.guarantee.to_device is None:
        return
    if not enforcements.keeps_on_segments(scenario):
        words = f"network {scenario.kept_by} keeps no promises on links of segments"
        yield Fault((*at, "toDevice"), f"{words}: leave it out, or take enforcement pod or node")
    elif enforcements.of(scenario).shares_links and scenario.segments[segment].rate is None:
        words = f"enforcement {scenario.kept_by} shares out links, so that of the segment must be known"
        yield Fault((*at, "toDevice"), f"{words}: set segments.{segment}.rate, such as 100M")


# In the order of a scenario's fields.
RULES = (_ends, _names, _ranges, _promises)
