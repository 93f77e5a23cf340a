"""How what a scenario says of segments and devices must agree: gateways, interfaces, addresses, ports.

Each rule yields faults, as those of everything else do. That no two networks overlap is one of those.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from ipaddress import IPv4Address

from testbed.scenario.addressing import Addressing
from testbed.scenario.devices import Device, Segment
from testbed.scenario.faults import Fault, Path, listed, render_path, unknown
from testbed.scenario.model import Scenario

# Of these kinds the testbed and the runtimes make interfaces on nodes, besides those known by name.
TAKEN_KINDS = ("cni-", "docker", "flannel.", "lo", "proxies", "veth")
RESERVED_ADDRESSES = 2  # of a segment: its own, and the one for broadcast
BY_TCP = ("TCP", "HTTP")


def _gateways(scenario: Scenario) -> Iterator[Fault]:
    """Gateways are workers, each with an interface that it has for nothing else."""
    workers = dict.fromkeys(name for one in scenario.clusters.values() for name in one.workers)
    taken: dict[tuple[str, str], str] = {}
    for name, segment in scenario.segments.items():
        for node, interface in segment.nodes.items():
            at: Path = ("segments", name, "nodes", node)
            if node not in scenario.nodes:
                yield Fault(at, unknown("node", node, scenario.nodes))
            elif node not in workers:
                words = f"{node!r} is not a worker of any cluster, and a gateway must be one"
                yield Fault(at, f"{words} (workers: {listed(workers)})")
            elif why := _in_use(scenario, node, interface):
                yield Fault(at, f"{interface} is {why}; choose another, such as eth1")
            elif (node, interface) in taken:
                other = taken[node, interface]
                yield Fault(at, f"{interface} of {node!r} is in segment {other!r}; choose another, or a node")
            taken.setdefault((node, interface), name)


def _in_use(scenario: Scenario, node: str, interface: str) -> str | None:
    """Return for what a node has an interface already, in words; None if it is free."""
    if interface == Addressing(scenario).uplink(node):
        return f"the uplink of {node!r}, on the underlay"
    if interface.startswith(TAKEN_KINDS):
        return f"a name of interfaces that pods' networks make on nodes ({', '.join(TAKEN_KINDS)})"
    return None


def _bridges(scenario: Scenario) -> Iterator[Fault]:
    """What leads into a segment is at its gateways, and neither their uplink nor in any segment."""
    for name, segment in scenario.segments.items():
        for index, bridge in enumerate(segment.bridges):
            at: Path = ("segments", name, "bridges", index)
            for node in filter(scenario.nodes.__contains__, segment.nodes):
                if why := _leads_elsewhere(scenario, node, bridge):
                    yield Fault(at, f"{bridge} is {why}; name one that a network's definition has there")
                    break


def _leads_elsewhere(scenario: Scenario, node: str, bridge: str) -> str | None:
    """Return in words what an interface of a node is for that no pod is behind; None if it is free."""
    ends = {one.nodes[node]: name for name, one in scenario.segments.items() if node in one.nodes}
    if bridge in ends:
        return f"where {node!r} is in segment {ends[bridge]!r}"
    if bridge == Addressing(scenario).uplink(node):
        return f"the uplink of {node!r}, on the underlay"
    return None


def _sizes(scenario: Scenario) -> Iterator[Fault]:
    devices = Counter(one.segment for one in scenario.devices.values())
    for name, segment in scenario.segments.items():
        ends = len(segment.nodes) + devices[name]
        room = max(0, segment.cidr.num_addresses - RESERVED_ADDRESSES)
        if room < ends:
            words = (
                f"{segment.cidr} has {room} addresses for {ends} gateways and devices: choose a larger one"
            )
            yield Fault(("segments", name, "cidr"), words)


def _devices(scenario: Scenario) -> Iterator[Fault]:
    """Each device has an address of its segment to itself, and a name that no node has."""
    nodes = {name.lower(): name for name in scenario.nodes}
    taken = {name: _taken(segment) for name, segment in scenario.segments.items()}
    for name, device in scenario.devices.items():
        at: Path = ("devices", name)
        if name in nodes:
            yield Fault(at, f"the name is taken by {render_path(('nodes', nodes[name]))}")
        segment = scenario.segments.get(device.segment)
        if segment is None:
            yield Fault((*at, "segment"), unknown("segment", device.segment, scenario.segments))
            continue
        why = taken[device.segment].get(device.address)
        if device.address not in segment.cidr:
            why = "not in the segment"
        if why:
            words = f"{device.address} is {why}; choose a free one of {segment.cidr}"
            yield Fault((*at, "address"), words)
        taken[device.segment].setdefault(device.address, f"the address of device {name!r}")


def _taken(segment: Segment) -> dict[IPv4Address, str]:
    """Return the addresses of a segment that no device can have, and in words what they are."""
    return {
        segment.cidr.network_address: "the address of the network itself",
        segment.cidr.broadcast_address: "the address for broadcast",
        **{one.ip: f"the address of gateway {node!r}" for node, one in segment.gateways.items()},
    }


def _ports(scenario: Scenario) -> Iterator[Fault]:
    """One server listens at a port of a protocol, and HTTP is by TCP."""
    for name, device in scenario.devices.items():
        yield from _ports_of(("devices", name, "components"), device)


def _ports_of(at: Path, device: Device) -> Iterator[Fault]:
    taken: dict[tuple[bool, int], Path] = {}
    for component, one in device.components.items():
        if not any(one.ports):
            yield Fault((*at, component), "has no port; write some, as in {TCP: [8554]}")
        for protocol, index, number in one.ports:
            here: Path = (*at, component, protocol, index)
            key = (protocol in BY_TCP, number)
            if key in taken:
                kind = "TCP, as HTTP is," if key[0] else "UDP"
                yield Fault(here, f"{number} by {kind} is taken by {render_path(taken[key])}; choose another")
            taken.setdefault(key, here)


RULES = (_gateways, _bridges, _sizes, _devices, _ports)
