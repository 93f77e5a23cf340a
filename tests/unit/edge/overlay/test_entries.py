"""The kernel's messages: what is read of them, and what is written is what the kernel reads."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address, IPv4Network

import pytest

from edge import netlink
from edge.overlay.entries import (
    Forwarding,
    LinkMessage,
    Neighbour,
    NeighbourMessage,
    Route,
    body_of,
    read_link,
    read_neighbour,
    read_route,
)
from tests.unit.edge.overlay.kernels import INDEX, attribute, l2_miss, l3_miss, of_neighbour, refresh

ADDRESS, MAC = IPv4Address("10.1.65.39"), "ee:c6:29:27:73:7a"


def only(datagram: bytes) -> bytes:
    """The body of a datagram's only message."""
    ((_, _, _, body),) = netlink.messages(datagram)
    return body


def test_an_address_without_a_mac_is_missed_on_layer_3() -> None:
    found = read_neighbour(only(l3_miss("10.1.65.39")))
    assert found == NeighbourMessage(netlink.AF_INET, INDEX, netlink.NUD_INCOMPLETE, ADDRESS, None)


def test_a_mac_without_an_address_is_missed_on_layer_2() -> None:
    found = read_neighbour(only(l2_miss(MAC)))
    assert found == NeighbourMessage(netlink.AF_INET, INDEX, netlink.NUD_STALE, None, MAC)


def test_both_are_asked_to_be_confirmed() -> None:
    found = read_neighbour(only(refresh("10.1.65.39", MAC)))
    assert found == NeighbourMessage(netlink.AF_INET, INDEX, netlink.NUD_PROBE, ADDRESS, MAC)


def test_what_is_written_of_a_neighbour_is_read_again() -> None:
    body = body_of(INDEX, Neighbour(ADDRESS, MAC), netlink.NUD_REACHABLE)
    expected = NeighbourMessage(netlink.AF_INET, INDEX, netlink.NUD_REACHABLE, ADDRESS, MAC)
    assert read_neighbour(body) == expected


def test_what_is_written_of_a_forwarding_entry_is_read_again() -> None:
    body = body_of(INDEX, Forwarding(MAC, IPv4Address("192.168.122.102")), 0)
    address = IPv4Address("192.168.122.102")
    expected = NeighbourMessage(netlink.AF_BRIDGE, INDEX, netlink.NUD_PERMANENT, address, MAC)
    assert read_neighbour(body) == expected
    assert body[10] == 0x02  # NTF_SELF: the device's own, not a bridge's


def test_what_is_written_of_a_route_is_read_again() -> None:
    route = Route(IPv4Network("10.1.65.0/24"), IPv4Address("10.1.65.0"))
    assert read_route(body_of(INDEX, route, 0), INDEX) == route


def test_a_route_of_another_device_or_without_a_gateway_is_none() -> None:
    route = Route(IPv4Network("10.1.65.0/24"), IPv4Address("10.1.65.0"))
    assert read_route(body_of(INDEX + 1, route, 0), INDEX) is None
    connected = struct.pack("=BBBBBBBBI", 2, 16, 0, 0, 254, 2, 253, 1, 0) + attribute(
        1, IPv4Address("10.1.0.0").packed
    )
    assert read_route(connected + attribute(4, struct.pack("=i", INDEX)), INDEX) is None


def test_a_device_has_a_name_and_a_mac() -> None:
    body = struct.pack("=BxHiII", 0, 1, INDEX, 0, 0) + attribute(3, b"flannel.1\0")
    assert read_link(body) is None
    assert read_link(body + attribute(1, bytes.fromhex(MAC.replace(":", "")))) == LinkMessage(
        INDEX, "flannel.1", MAC
    )


@pytest.mark.parametrize(
    "body",
    [
        b"",
        of_neighbour("10.1.2.1")[:11],
        of_neighbour("10.1.2.1", family=10),
        of_neighbour() + attribute(1, b""),
        of_neighbour() + attribute(1, bytes(16)),
        of_neighbour() + attribute(2, bytes(8)),
        of_neighbour() + struct.pack("=HH", 3, 1),
        of_neighbour() + struct.pack("=HH", 40, 1) + bytes(4),
        of_neighbour() + b"\x08\x00\x01",
    ],
)
def test_what_is_not_whole_says_nothing(body: bytes) -> None:
    assert read_neighbour(body) is None
