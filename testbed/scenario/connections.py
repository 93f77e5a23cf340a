"""What connections of a scenario are made of: proxy pods on gateways, services, ports; pure.

What a proxy pod is told, and at which ports it takes what for whom, is said by what renders those of clusters
(``edge.devices.rendering``), so that they are alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network

from edge.devices import kinds, rendering
from edge.devices.kinds import PREFIX
from edge.devices.rendering import Port
from testbed.scenario import blocks
from testbed.scenario.devices import Connection
from testbed.scenario.model import Pod, Scenario, Service, Traffic, Transfer
from testbed.scenario.units import format_rate

INTERFACE = "net1"  # of a proxy pod, towards its segment
# Where proxy pods have their addresses there: what nobody outside of a gateway sees (RFC 6598).
RANGES, RANGE_PREFIX = IPv4Network("100.64.0.0/10"), 24


def whole(scenario: Scenario) -> dict[str, Connection]:
    """Return the connections whose ends are there: all, once rules have looked."""
    return {name: one for name, one in scenario.connections.items() if is_whole(scenario, one)}


def is_whole(scenario: Scenario, one: Connection) -> bool:
    """Tell whether a connection's cluster, device and segment are there."""
    return one.cluster in scenario.clusters and scenario.segment_of(one.device) is not None


def of_pods(scenario: Scenario) -> dict[str, str]:
    """Return the connection of each proxy pod, by the pod's name."""
    return {pod: name for name in whole(scenario) for pod in _placed(scenario, name)}


def pods(scenario: Scenario) -> dict[str, Pod]:
    """Return the proxy pods, by name."""
    return {
        pod: Pod(cluster=one.cluster, node=node, guarantee=one.guarantee.from_device)
        for name, one in whole(scenario).items()
        for pod, node in _placed(scenario, name).items()
    }


def service_of(name: str) -> str:
    """Return what the service of a connection is called."""
    return f"{PREFIX}{name}"


def services(scenario: Scenario) -> dict[str, Service]:
    """Return the connections' services, by name; their ports are those of ``ports``."""
    return {
        service_of(name): Service.model_construct(cluster=one.cluster, pods=list(_placed(scenario, name)))
        for name, one in whole(scenario).items()
    }


def _placed(scenario: Scenario, name: str) -> dict[str, str]:
    """Return the node of each of a connection's proxy pods."""
    nodes = scenario.gateways_of(scenario.connections[name])
    return {f"{PREFIX}{name}-{number}": node for number, node in enumerate(nodes, start=1)}


def ports(scenario: Scenario, name: str) -> list[Port]:
    """Return what of its device a connection leads to, each with the port of its proxy pods for it."""
    device = device_of(scenario, scenario.connections[name].device)
    connection = connection_of(scenario, name)
    return list(rendering.taken_ports(connection, [device.component(one) for one in connection.components]))


def annotations_of(scenario: Scenario, name: str) -> dict[str, str]:
    """Return what a connection's proxy pods are told, but for what their cluster's network is."""
    connection = connection_of(scenario, name)
    return rendering.annotations_of(connection, device_of(scenario, connection.device), ports(scenario, name))


def socats(scenario: Scenario, name: str, address: str) -> Iterator[tuple[Port, list[str]]]:
    """Yield the arguments of the relays in a proxy pod that has this address in its cluster; often none."""
    own = scenario.connections[name]
    if own.mode == kinds.RELAY:
        device = device_of(scenario, own.device)
        for port in ports(scenario, name):
            yield port, rendering.socat(device, port, address)


def device_of(scenario: Scenario, name: str) -> kinds.Device:
    """Return a device as it is written in a manifest."""
    device = scenario.devices[name]
    components = tuple(
        kinds.Component(
            component,
            True,
            tuple(kinds.Handler(f"{protocol}-{port}", protocol, port) for protocol, _, port in of.ports),
        )
        for component, of in device.components.items()
    )
    nodes = tuple(scenario.segments[device.segment].nodes)
    return kinds.Device(name, nodes, True, device.address, components)


def connection_of(scenario: Scenario, name: str) -> kinds.Connection:
    """Return a connection as it is written in a manifest."""
    own = scenario.connections[name]
    to_device = own.guarantee.to_device
    return kinds.Connection(
        "default",
        name,
        own.device,
        scenario.devices[own.device].segment,
        tuple(own.components),
        own.mode,
        own.replicas,
        # What the pod sends into its cluster is promised to it as to any pod.
        kinds.Guarantee("" if to_device is None else format_rate(to_device)),
    )


def port_of(scenario: Scenario, transfer: Transfer) -> int | None:
    """Return the device's port to which a transfer to a connection is sent; None where there is none.

    That is the first of its protocol, TCP for HTTP too, of its component or else of all.
    """
    connection = scenario.connections[transfer.destination]
    device = scenario.devices[connection.device]
    named = [transfer.component] if transfer.component else connection.components
    found = (
        port
        for name in named
        if name in device.components
        for protocol, _, port in device.components[name].ports
        if kinds.transport(protocol) == transfer.protocol.upper()
    )
    return next(found, None)


def listened(transfer: Transfer, port: int) -> list[tuple[str, int]]:
    """Return where a transfer's receiver listens, as protocols and ports; iperf3 speaks TCP in any case."""
    protocols = {transfer.protocol, *(["tcp"] if isinstance(transfer, Traffic) else [])}
    return [(protocol.upper(), port) for protocol in sorted(protocols)]


def sent(scenario: Scenario) -> dict[str, set[tuple[str, int]]]:
    """Return of each device the protocols and ports at which what makes traffic listens in its place."""
    found: dict[str, set[tuple[str, int]]] = {name: set() for name in scenario.devices}
    for transfer in scenario.transfers:
        if transfer.destination in scenario.connections and (port := port_of(scenario, transfer)):
            found[scenario.connections[transfer.destination].device].update(listened(transfer, port))
    return found


def ranges(scenario: Scenario) -> dict[str, IPv4Network]:
    """Return where proxy pods have addresses at each segment; without those that find no room."""
    free = blocks.free(RANGES, RANGE_PREFIX, scenario.ranges)
    return dict(zip(scenario.segments, free, strict=False))
