"""Segments, devices and ways to them in words: what is built of them, for whoever asks before or after."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.scenario import Scenario, connections
from testbed.scenario.addressing import Addressing
from testbed.scenario.devices import Device
from testbed.scenario.units import format_bps


def said(scenario: Scenario) -> Iterator[str]:
    """Yield a line for each segment, below it one for each of its devices, then one for each connection."""
    for name in scenario.segments:
        yield "  ".join(segment(scenario, name))
        for other in devices_of(scenario, name):
            yield "  " + "  ".join(device(other, scenario.devices[other]))
    addressing = Addressing(scenario)
    for name in scenario.connections:
        yield "  ".join(connection(addressing, name))


def segment(scenario: Scenario, name: str) -> tuple[str, ...]:
    """Return a segment's name, its range and rate, and its gateways."""
    one = scenario.segments[name]
    rate = [format_bps(one.rate)] if one.rate else []
    gateways = [f"{node} by {one.nodes[node]}, {address.ip}" for node, address in one.gateways.items()]
    return (f"segment {name}", ", ".join([str(one.cidr), *rate]), f"gateway {'; '.join(gateways)}")


def device(name: str, one: Device) -> tuple[str, ...]:
    """Return a device's name, its address, and each component with its ports."""
    components = []
    for component, of in one.components.items():
        ports = ", ".join(f"{protocol} {number}" for protocol, _, number in of.ports)
        components.append(f"{component} {ports}")
    return (name, str(one.address), *components)


def connection(addressing: Addressing, name: str) -> tuple[str, ...]:
    """Return a connection's name, from where it leads where, by which gateways, and what is promised."""
    one, service = addressing.scenario.connections[name], connections.service_of(name)
    gateways = ", ".join(addressing.scenario.gateways_of(one))
    promises = ((one.guarantee.to_device, "to the device"), (one.guarantee.from_device, "from it"))
    return (
        f"connection {name}",
        f"{one.cluster} to {one.device}: {', '.join(one.components)}",
        f"{service} {addressing.service(service)}",
        f"{one.mode} on {gateways}",
        *(f"{format_bps(rate)} {words}" for rate, words in promises if rate),
    )


def devices_of(scenario: Scenario, segment: str) -> list[str]:
    """Return the devices in a segment."""
    return [name for name, one in scenario.devices.items() if one.segment == segment]
