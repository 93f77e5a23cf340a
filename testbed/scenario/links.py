"""Which links there are between nodes, how fast each is, and which of them a packet passes.

Every node has a link to its switch. With zones each zone has a switch, and a trunk that joins it to the core,
where the trunks meet: what goes from one zone to another passes both zones' trunks. A private network has a
link to each of its gateways and devices. A link has the same rate in both directions, and each direction is
by itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from testbed.scenario.frames import of_full_frames
from testbed.scenario.model import Scenario, Transfer


class Link(NamedTuple):
    """One direction of a node's link, of a zone's trunk, or of a gateway's or device's in a segment."""

    owner: str  # the node, zone or device
    trunk: bool
    out: bool  # away from its owner
    segment: str | None = None


def rate_of(scenario: Scenario, node: str) -> int | None:
    """Return the rate of a node's link, bits per second: its own, else what all have; None without one."""
    own = scenario.nodes[node].rate
    return scenario.underlay.rate if own is None else own


def rate(scenario: Scenario, link: Link) -> int | None:
    """Return the rate of a link, bits per second; None if nothing but the machine limits it."""
    if link.segment is not None:
        return scenario.segments[link.segment].rate
    return scenario.zones[link.owner].rate if link.trunk else rate_of(scenario, link.owner)


def passed(scenario: Scenario, transfer: Transfer) -> tuple[Link, ...]:
    """Return the links that a transfer passes, from its sender's; of several receivers' the first one's."""
    source, last = scenario.nodes_of(transfer)
    links = way(scenario, source, last)
    if transfer.destination not in scenario.connections:
        return links
    device = scenario.connections[transfer.destination].device
    segment = scenario.devices[device].segment
    into = Link(last, trunk=False, out=True, segment=segment)
    return (*links, into, Link(device, trunk=False, out=False, segment=segment))


def way(scenario: Scenario, source: str, destination: str) -> tuple[Link, ...]:
    """Return the links from one node to another, in the order in which a packet passes them."""
    if source == destination:
        return ()
    first, last = Link(source, trunk=False, out=True), Link(destination, trunk=False, out=False)
    return (first, *_trunks(scenario, source, destination), last)


def limited(scenario: Scenario) -> bool:
    """Tell whether packets may have to wait for a link: one has a rate, or takes time."""
    return bool(
        any(rate_of(scenario, node) is not None for node in scenario.nodes)
        or any(zone.rate is not None or zone.delay for zone in scenario.zones.values())
        or any(segment.rate is not None for segment in scenario.segments.values())
    )


def most(scenario: Scenario, paths: Iterable[tuple[str, str]]) -> float:
    """Return what the links carry at most from node to node, all at once, bits per second of full frames.

    They pass four rows of links one after the other, of which the narrowest counts: their senders', the
    trunks out, the trunks in, their receivers'. Infinite if none of the rows has an end.
    """
    rows: tuple[set[Link], ...] = (set(), set(), set(), set())
    for source, destination in paths:
        first, last = Link(source, trunk=False, out=True), Link(destination, trunk=False, out=False)
        out, into = _trunks(scenario, source, destination) or (first, last)
        for row, link in zip(rows, (first, out, into, last), strict=True):
            row.add(link)
    least = min(sum(_known(rate(scenario, link)) for link in row) for row in rows)
    return of_full_frames(least, scenario.underlay.frame_overhead)


def contested(scenario: Scenario) -> Iterator[str]:
    """Yield the zones whose trunk a promised pod sends through, and others can fill.

    They can if the links behind it are together faster. Whoever shares out the links of nodes does not see
    the trunks.
    """
    passed = {
        link.owner: None
        for flow in scenario.flows
        if scenario.guarantee_of(flow) is not None
        for link in _trunks(scenario, *scenario.nodes_of(flow))
    }
    for name in passed:
        behind = (rate_of(scenario, node) for node, one in scenario.nodes.items() if one.zone == name)
        if _known(scenario.zones[name].rate) < sum(map(_known, behind)):
            yield name


def met(scenario: Scenario) -> Iterator[str]:
    """Yield the nodes on whose link a promised flow arrives and other nodes can fill what it leaves.

    They can if it, as promised, and all that they are said to send there meanwhile is more than the link
    has. Who shares out the link that a flow leaves by does not see that.
    """
    for flow in scenario.flows:
        promised = scenario.guarantee_of(flow)
        source, destination = scenario.nodes_of(flow)
        if promised is None or source == destination:
            continue
        others = [
            _known(other.rate)
            for other in scenario.traffic
            if scenario.nodes_of(other)[1] == destination
            and scenario.nodes_of(other)[0] not in (source, destination)
            and other.start < flow.end
            and flow.start < other.end
        ]
        if others and promised + sum(others) > _known(rate_of(scenario, destination)):
            yield destination


def _trunks(scenario: Scenario, source: str, destination: str) -> tuple[Link, ...]:
    """Return the trunks between two nodes: two, or none."""
    here, there = scenario.nodes[source].zone, scenario.nodes[destination].zone
    if here is None or there is None or here == there:
        return ()
    return Link(here, trunk=True, out=True), Link(there, trunk=True, out=False)


def _known(bits_per_second: int | None) -> float:
    return math.inf if bits_per_second is None else bits_per_second
