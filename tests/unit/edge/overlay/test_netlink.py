"""The kernel's messages: what is read of them, and what is written is what the kernel reads."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address, IPv4Network

import pytest

from edge.overlay import netlink
from edge.overlay.entries import Forwarding, Neighbour, Route
from edge.overlay.netlink import Link, Message, Said
from tests.unit.edge.overlay.kernels import INDEX, attribute, l2_miss, l3_miss, message, of_neighbour, refresh

ADDRESS, MAC = IPv4Address("10.1.65.39"), "ee:c6:29:27:73:7a"


def only(datagram: bytes) -> Message:
    (found,) = netlink.messages(datagram)
    return found


def test_an_address_without_a_mac_is_missed_on_layer_3() -> None:
    found = netlink.said(only(l3_miss("10.1.65.39")).body)
    assert found == Said(netlink.INET, INDEX, netlink.INCOMPLETE, ADDRESS, None)


def test_a_mac_without_an_address_is_missed_on_layer_2() -> None:
    found = netlink.said(only(l2_miss(MAC)).body)
    assert found == Said(netlink.INET, INDEX, netlink.STALE, None, MAC)


def test_both_are_asked_to_be_confirmed() -> None:
    found = netlink.said(only(refresh("10.1.65.39", MAC)).body)
    assert found == Said(netlink.INET, INDEX, netlink.PROBE, ADDRESS, MAC)


def test_several_messages_of_a_datagram_are_read_up_to_one_that_is_not_whole() -> None:
    datagram = l3_miss("10.1.2.1") + l2_miss(MAC) + l3_miss("10.1.2.2")[:-1]
    assert [one.kind for one in netlink.messages(datagram)] == [netlink.GET_NEIGHBOUR] * 2


def test_what_is_written_of_a_neighbour_is_read_again() -> None:
    body = netlink.neighbour(INDEX, Neighbour(ADDRESS, MAC), netlink.REACHABLE)
    assert netlink.said(body) == Said(netlink.INET, INDEX, netlink.REACHABLE, ADDRESS, MAC)


def test_what_is_written_of_a_forwarding_entry_is_read_again() -> None:
    body = netlink.forwarding(INDEX, Forwarding(MAC, IPv4Address("192.168.122.102")))
    address = IPv4Address("192.168.122.102")
    assert netlink.said(body) == Said(netlink.BRIDGE, INDEX, netlink.PERMANENT, address, MAC)
    assert body[10] == 0x02  # NTF_SELF: the device's own, not a bridge's


def test_what_is_written_of_a_route_is_read_again() -> None:
    route = Route(IPv4Network("10.1.65.0/24"), IPv4Address("10.1.65.0"))
    assert netlink.route(netlink.onlink(INDEX, route), INDEX) == route


def test_a_route_of_another_device_or_without_a_gateway_is_none() -> None:
    route = Route(IPv4Network("10.1.65.0/24"), IPv4Address("10.1.65.0"))
    assert netlink.route(netlink.onlink(INDEX + 1, route), INDEX) is None
    connected = struct.pack("=BBBBBBBBI", 2, 16, 0, 0, 254, 2, 253, 1, 0) + attribute(
        1, IPv4Address("10.1.0.0").packed
    )
    assert netlink.route(connected + attribute(4, struct.pack("=i", INDEX)), INDEX) is None


def test_a_device_has_a_name_and_a_mac() -> None:
    body = struct.pack("=BxHiII", 0, 1, INDEX, 0, 0) + attribute(3, b"flannel.1\0")
    assert netlink.link(body) is None
    assert netlink.link(body + attribute(1, bytes.fromhex(MAC.replace(":", "")))) == Link(
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
    assert netlink.said(body) is None


def test_an_error_has_a_number_and_none_is_0() -> None:
    assert netlink.failure(struct.pack("=i", -17) + bytes(16)) == 17
    assert netlink.failure(struct.pack("=i", 0)) == 0
    assert netlink.failure(b"\0\0") is None


def test_a_request_is_a_message() -> None:
    made = netlink.request(netlink.GET_LINK, netlink.ACKNOWLEDGE, 5, netlink.named("flannel.1"))
    found = only(made)
    assert (found.kind, found.flags, found.sequence) == (netlink.GET_LINK, 0x5, 5)
    assert message(netlink.GET_LINK, found.body)[16:] == made[16:]
