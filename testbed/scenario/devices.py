"""What stands at a station and is no node: devices, the segments that they are in, and ways to them.

A segment is a private network, with a cable to each of its gateways, workers with a second interface, and to
each of its devices. A connection leads from a cluster to some components of a device.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Interface
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, WithJsonSchema

from testbed.scenario.words import Address, DnsLabel, Interface, Name, Network, Part, Rate

FIRST_PORT, LAST_PORT = 1, 65_535


def _port(number: int) -> int:
    """Refuse what no server can listen at."""
    if not FIRST_PORT <= number <= LAST_PORT:
        raise ValueError(f"must be a port from {FIRST_PORT} to {LAST_PORT}, not {number}")
    return number


Port = Annotated[
    int,
    AfterValidator(_port),
    WithJsonSchema({"type": "integer", "minimum": FIRST_PORT, "maximum": LAST_PORT}),
]


class Segment(Part):
    """A private network: what is in it reaches its gateways and each other, and nothing else."""

    cidr: Network = Field(description="the addresses of gateways, from the first on, and of devices")
    rate: Rate | None = Field(None, description="speed of each cable in it, both ways; none: the machine's")
    nodes: dict[Name, Interface] = Field(
        min_length=1, description="its gateways: workers, and the interface that each has there, such as eth1"
    )
    bridges: list[Interface] = Field(
        [],
        description="bridges at its gateways that lead there, such as a network definition's; whoever is "
        "behind one may begin with its devices",
    )

    @property
    def gateways(self) -> dict[str, IPv4Interface]:
        """The address of each gateway there, by its node's name: the first ones, in their order."""
        pairs = zip(self.nodes, self.cidr.hosts(), strict=False)
        return {node: IPv4Interface((address, self.cidr.prefixlen)) for node, address in pairs}


class DeviceComponent(Part):
    """A part of a device, and the ports at which it answers."""

    tcp: list[Port] = Field([], alias="TCP", description="ports of servers that send back what they get")
    udp: list[Port] = Field([], alias="UDP", description="the same, a datagram for each")
    http: list[Port] = Field(
        [], alias="HTTP", description="ports of HTTP servers, which send back the body, or else the path"
    )

    @property
    def ports(self) -> Iterator[tuple[str, int, int]]:
        """Each port, as its protocol's field, its place there, and its number."""
        for protocol, numbers in (("TCP", self.tcp), ("UDP", self.udp), ("HTTP", self.http)):
            for index, number in enumerate(numbers):
                yield protocol, index, number


class Device(Part):
    """A machine that runs no kubelet, such as a camera: no route leads from it but into its segment."""

    segment: DnsLabel = Field(description="where it is")
    address: Address = Field(description="in the segment's range; none of its gateways'")
    components: dict[DnsLabel, DeviceComponent] = Field(min_length=1, description="what answers there")


class DeviceGuarantee(Part):
    """What a connection is promised; each direction by itself, where its packets leave a proxy pod."""

    to_device: Rate | None = Field(
        None, alias="toDevice", description="the rate promised to each proxy pod on the segment's link"
    )
    from_device: Rate | None = Field(
        None, alias="fromDevice", description="the rate promised to what each proxy pod sends its cluster"
    )


class Connection(Part):
    """A way from a cluster to a device: a service of the device's ports, by proxy pods on its gateways."""

    cluster: Name = Field(description="whose pods it is for")
    device: DnsLabel = Field(description="where it leads")
    components: list[DnsLabel] = Field(min_length=1, description="what of the device can be reached by it")
    mode: Literal["translate", "relay"] = Field(
        "translate",
        description="who sends packets on; translate: the proxy pod's kernel, relay: a socat for each port",
    )
    replicas: int = Field(
        1, ge=1, description="proxy pods, each on another of the gateways that are the cluster's workers"
    )
    guarantee: DeviceGuarantee = Field(DeviceGuarantee(), description="the rates promised")
