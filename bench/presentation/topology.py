"""What a scenario is made of, drawn: zones, nodes, clusters, services, segments, pods and their promises.

``tree`` is for terminals, ``svg`` for people and papers. Both are functions of the scenario, and of the
addresses that its places have where it is up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from rich.text import Text
from rich.tree import Tree

from bench.presentation import segments
from bench.presentation.figures.style import CLUSTERS, OUTSIDE
from bench.presentation.report import rendered
from bench.presentation.wording import verbatim
from edge.services.hints import OFF
from edge.services.selection import LOCAL
from testbed.scenario import Cluster, Scenario, connections
from testbed.scenario.addressing import Addressing
from testbed.scenario.faults import listed
from testbed.scenario.units import format_bps

# Pixels: of a pod's height, of what is around it, of a line of text and about a character of it.
HEIGHT, GAP, LINE, CHARACTER = 50, 12, 18, 7


class Workload(NamedTuple):
    """A pod or a container on a node."""

    name: str
    cluster: str  # empty: a container, which belongs to none
    address: str  # empty: not known, as of what is not up
    promise: str  # in words; empty: none


class Box(NamedTuple):
    """A workload, a node or a zone where it is drawn; pixels."""

    x: int
    y: int
    width: int
    height: int
    lines: tuple[str, ...]
    colour: str = "none"


def tree(scenario: Scenario, addresses: Mapping[str, str] | None = None) -> Tree:
    """Return a scenario as a tree: zones if there are some, nodes, and what runs there."""
    addresses = _with_blocks(scenario, addresses or {})
    found = Tree(Text.assemble((scenario.name, "bold"), f": enforcement {scenario.kept_by}"))
    for name, cluster in scenario.clusters.items():
        pods = _pods(cluster)
        above = found.add(
            verbatim(f"cluster {name}: master {cluster.master}, {pods}, backend {cluster.backend}")
        )
        for service in _services(scenario, name):
            above.add(verbatim("  ".join(service)))
    for zone, nodes in _zones(scenario).items():
        above = found.add(verbatim(": ".join(_zone(scenario, zone)))) if zone else found
        for node in nodes:
            branch = above.add(Text.assemble((node, "bold"), verbatim(_suffix(scenario, node, addresses))))
            for one in _workloads(scenario, node, addresses):
                said = (one.cluster and f"cluster {one.cluster}", one.address, one.promise)
                branch.add(verbatim("  ".join(filter(None, (one.name, *said)))))
    for name in scenario.segments:
        above = found.add(verbatim("  ".join(segments.segment(scenario, name))))
        for device in segments.devices_of(scenario, name):
            above.add(verbatim("  ".join(segments.device(device, scenario.devices[device]))))
    return found


def svg(scenario: Scenario, addresses: Mapping[str, str] | None = None) -> str:
    """Return a scenario as a picture: a column for each node, a frame for each zone, the network below.

    Above are segments, each with a line to its gateways.
    """
    addresses = _with_blocks(scenario, addresses or {})
    columns = {name: _column(scenario, name, addresses) for name in scenario.nodes}
    width = max(box.width for one in columns.values() for box in one)
    height = max(box.y + box.height for one in columns.values() for box in one) + GAP
    framed = 2 * LINE + GAP if scenario.zones else 0
    above = list(_segments(scenario, 3 * LINE))
    boxes, links, x = [box for one in above for box in one], [], GAP
    top = max([3 * LINE, *(box.y + box.height + 3 * GAP for box in boxes)])
    right = max([0, *(box.x + box.width + GAP for box in boxes)])
    columns_at: dict[str, int] = {}
    bottom = top + framed + height + (GAP if framed else 0)
    for zone, nodes in _zones(scenario).items():
        end = x
        if zone:
            said = _zone(scenario, zone)
            whole = max(len(nodes) * (width + GAP) + GAP, _wide(said) + 2 * GAP)
            boxes.append(Box(x, top, whole, bottom - top, said))
            links.append(x + whole // 2)
            end = x + whole + GAP
            x += GAP
        for node in nodes:
            frame, *workloads = columns[node]
            at = (x, top + framed)
            boxes += [_moved(frame._replace(width=width, height=height), *at)]
            boxes += [_moved(box._replace(width=width - 2 * GAP), *at) for box in workloads]
            columns_at[node] = x
            links += [] if zone else [x + width // 2]
            x += width + GAP
        x = max(x, end)
    x = max(x, right)
    under = f"underlay {scenario.underlay.cidr}, MTU {scenario.underlay.mtu}"
    network = Box(GAP, bottom + 2 * GAP, x - 2 * GAP, LINE + GAP, (under,), OUTSIDE)
    key = list(_key(scenario, network.y + network.height + GAP, x))
    title = f"{scenario.title or scenario.name}: enforcement {scenario.kept_by}"
    return rendered(
        "topology.svg.j2",
        title=title,
        boxes=[*boxes, network, *key],
        links=[
            *((link, bottom, link, network.y) for link in links),
            *_to_gateways(scenario, above, columns_at, width, top + framed),
        ],
        width=max([x, GAP + len(title) * 9, *(box.x + box.width + GAP for box in key)]),
        height=key[-1].y + key[-1].height + GAP,
        line=LINE,
        gap=GAP,
    )


def _column(scenario: Scenario, node: str, addresses: Mapping[str, str]) -> list[Box]:
    """Return a node, and what runs there, at the origin and as wide as their words."""
    here = list(_workloads(scenario, node, addresses))
    masters = [name for name, cluster in scenario.clusters.items() if cluster.master == node]
    head = [node, _suffix(scenario, node, addresses).strip()]
    head += [f"master of {', '.join(masters)}"] if masters else []
    lines = tuple(filter(None, head))
    top = GAP + 2 * LINE
    texts = [
        (
            " ".join(filter(None, (one.name, one.address))),
            one.promise or ("no promise" if one.cluster else ""),
        )
        for one in here
    ]
    boxes = [
        Box(
            GAP,
            top + number * (HEIGHT + GAP),
            _wide(text) + 2 * GAP,
            HEIGHT,
            text,
            _colour(scenario, one.cluster),
        )
        for number, (one, text) in enumerate(zip(here, texts, strict=True))
    ]
    widest = max([_wide(lines), *(box.width for box in boxes)]) + 2 * GAP
    return [Box(0, 0, widest, top, lines), *boxes]


def _segments(scenario: Scenario, top: int) -> Iterator[list[Box]]:
    """Yield each segment, from left to right, with its devices in it."""
    left = GAP
    for name in scenario.segments:
        title, *rest = segments.segment(scenario, name)
        head = (title, "; ".join(rest))
        x, y, devices = left + GAP, top + GAP + 2 * LINE, []
        for device in segments.devices_of(scenario, name):
            called, *words = segments.device(device, scenario.devices[device])
            lines = (called, "; ".join(words))
            devices.append(Box(x, y, _wide(lines) + 2 * GAP, HEIGHT, lines, OUTSIDE))
            x += devices[-1].width + GAP
        width = max(_wide(head) + 2 * GAP, x - left)
        height = GAP + 2 * LINE + (HEIGHT + GAP if devices else 0)
        yield [Box(left, top, width, height, head), *devices]
        left += width + GAP


def _to_gateways(
    scenario: Scenario, drawn: Iterable[list[Box]], columns: Mapping[str, int], width: int, top: int
) -> Iterator[tuple[int, int, int, int]]:
    """Yield a line from each segment to each of its gateways, whose columns of a width begin at ``top``.

    It ends at a column's right, where nothing is written above it, and falls straight where it can.
    """
    for segment, (frame, *_) in zip(scenario.segments.values(), drawn, strict=True):
        for node in segment.nodes:
            end = columns[node] + width - GAP
            begin = min(max(end, frame.x + GAP), frame.x + frame.width - GAP)
            yield begin, frame.y + frame.height, end, top


def _key(scenario: Scenario, top: int, width: int) -> Iterator[Box]:
    """Yield clusters in a row, then their services, in as many rows as fill the width."""
    left = GAP
    for name, cluster in scenario.clusters.items():
        lines = (f"cluster {name}: {cluster.backend}", _pods(cluster))
        yield Box(left, top, _wide(lines) + 2 * GAP, HEIGHT, lines, _colour(scenario, name))
        left += _wide(lines) + 3 * GAP
    width, left = max(width, left), width
    for name in scenario.clusters:
        for title, *rest in _services(scenario, name):
            lines = (title, "; ".join(rest))
            wide = _wide(lines) + 2 * GAP
            if left + wide + GAP > width:
                left, top = GAP, top + HEIGHT + GAP
            yield Box(left, top, wide, HEIGHT, lines, _colour(scenario, name))
            left += wide + GAP


def _services(scenario: Scenario, cluster: str) -> Iterator[tuple[str, ...]]:
    """Yield of each service of a cluster its name, where it is, its pods, and who of them is asked.

    Behind them are connections to devices.
    """
    own = {name: one for name, one in scenario.services.items() if one.cluster == cluster}
    ways = [name for name, one in scenario.connections.items() if one.cluster == cluster]
    if own or ways:
        addressing = Addressing(scenario)
        for name, service in own.items():
            at = f"{addressing.service(name)}:{service.port}"
            said = [f"hints {service.hints}"] if service.hints != OFF else []
            said += [f"policy {service.policy}"] if service.policy == LOCAL else []
            yield (f"service {name}", at, listed(service.pods), *said)
        for name in ways:
            yield segments.connection(addressing, name)


def _pods(cluster: Cluster) -> str:
    """Say where a cluster's pods are, and how large the blocks are where that differs."""
    ranges = [f"{one.cidr} by /{one.mask}" for one in cluster.pod_cidrs or ()]
    return f"pods {', '.join(ranges) or cluster.pod_cidr}"


def _wide(lines: Iterable[str]) -> int:
    """Return about how wide words are, pixels."""
    return CHARACTER * max(map(len, lines), default=0)


def _zones(scenario: Scenario) -> dict[str, list[str]]:
    """Return the nodes of each zone; all of them under an empty name where there are no zones."""
    found: dict[str, list[str]] = {name: [] for name in scenario.zones} or {"": []}
    for name, node in scenario.nodes.items():
        found[node.zone or ""].append(name)
    return {zone: nodes for zone, nodes in found.items() if nodes}


def _zone(scenario: Scenario, name: str) -> tuple[str, ...]:
    zone = scenario.zones[name]
    said = [format_bps(zone.rate)] if zone.rate else []
    said += [f"{zone.delay * 1000:g} ms each way"] if zone.delay else []
    return (f"zone {name}", f"trunk {', '.join(said)}") if said else (f"zone {name}",)


def _suffix(scenario: Scenario, node: str, addresses: Mapping[str, str]) -> str:
    rate = scenario.nodes[node].rate or scenario.underlay.rate
    link = f"link {format_bps(rate)}" if rate else ""
    return "".join(f"  {text}" for text in (addresses.get(node, ""), link) if text)


def _with_blocks(scenario: Scenario, addresses: Mapping[str, str]) -> dict[str, str]:
    """Return addresses, and beside a node's its block of each cluster whose nodes differ in size."""
    addressing, found = Addressing(scenario), dict(addresses)
    for name, cluster in scenario.clusters.items():
        for node in cluster.nodes if cluster.pod_cidrs is not None else ():
            block = addressing.blocks(name).given.get(node, "waits for a block")
            found[node] = "  ".join(filter(None, (found.get(node), f"{name}: {block}")))
    return found


def _workloads(scenario: Scenario, node: str, addresses: Mapping[str, str]) -> Iterator[Workload]:
    for name, pod in {**scenario.pods, **connections.pods(scenario)}.items():
        if pod.node == node:
            said = [f"{format_bps(pod.guarantee)} promised"] if pod.guarantee else []
            said += [f"{format_bps(pod.ingress)} to receive"] if pod.ingress else []
            said += [f"at most {format_bps(pod.ceiling)}"] if pod.ceiling else []
            yield Workload(name, pod.cluster, addresses.get(name, ""), ", ".join(said))
    for name, container in scenario.containers.items():
        if container.node == node:
            yield Workload(name, "", addresses.get(name, ""), "")


def _colour(scenario: Scenario, cluster: str) -> str:
    return CLUSTERS[list(scenario.clusters).index(cluster) % len(CLUSTERS)] if cluster else OUTSIDE


def _moved(box: Box, x: int, y: int) -> Box:
    return box._replace(x=box.x + x, y=box.y + y)
