"""Segments and devices in words: what is built of them, for whoever asks before or after."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.scenario import Scenario
from testbed.scenario.devices import Device
from testbed.scenario.units import format_bps


def said(scenario: Scenario) -> Iterator[str]:
    """Yield a line for each segment, and below it one for each of its devices."""
    for name in scenario.segments:
        yield "  ".join(segment(scenario, name))
        for other in devices_of(scenario, name):
            yield "  " + "  ".join(device(other, scenario.devices[other]))


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


def devices_of(scenario: Scenario, segment: str) -> list[str]:
    """Return the devices in a segment."""
    return [name for name, one in scenario.devices.items() if one.segment == segment]
