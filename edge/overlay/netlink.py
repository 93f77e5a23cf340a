"""The kernel's messages about neighbours, forwarding entries and routes: bytes to records and back.

Nothing here asks the kernel, and nothing here fails: what is not as it should be is no message. Numbers are
in the machine's own byte order, addresses in the network's. Source: netlink(7), rtnetlink(7);
linux/netlink.h, linux/rtnetlink.h, linux/neighbour.h, linux/if_link.h.

A device that was made with ``proxy`` and ``l2miss``, whose neighbours are solicited from programs
(``app_solicit``), asks by RTM_GETNEIGH, whatever the program that set it up. What is asked is told by what is
there (drivers/net/vxlan/vxlan_core.c, vxlan_fdb_miss; net/core/neighbour.c, neigh_app_ns):

* an address and no MAC: whose address is this? flannel's L3 miss;
* a MAC and no address: behind which node is it? flannel's L2 miss;
* both: is that still so? asked of an entry that was not confirmed for a while.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network
from struct import Struct
from typing import NamedTuple

from edge.overlay.entries import Forwarding, Neighbour, Route

# Kinds of messages: NLMSG_* and RTM_*.
ERROR, DONE, OVERRUN = 2, 3, 4
NEW_LINK, DELETE_LINK, GET_LINK = 16, 17, 18
NEW_ROUTE, DELETE_ROUTE, GET_ROUTE = 24, 25, 26
NEW_NEIGHBOUR, DELETE_NEIGHBOUR, GET_NEIGHBOUR = 28, 29, 30
# NLM_F_*
REQUEST, ACKNOWLEDGE, DUMP, REPLACE, CREATE = 0x1, 0x4, 0x300, 0x100, 0x400

INET, BRIDGE = 2, 7  # AF_*
# NUD_*: states of a neighbour. With NOARP the kernel marks those that nobody asks about, as of multicast.
INCOMPLETE, REACHABLE, STALE, DELAY, PROBE = 0x01, 0x02, 0x04, 0x08, 0x10
FAILED, NOARP, PERMANENT = 0x20, 0x40, 0x80
_SELF = 0x02  # NTF_SELF: of the device itself, not of a bridge it may be a port of
_DST, _LLADDR, _IFINDEX = 1, 2, 8  # NDA_*
_LINK_ADDRESS, _LINK_NAME = 1, 3  # IFLA_*
_ROUTE_DST, _ROUTE_OIF, _ROUTE_GATEWAY, _ROUTE_TABLE = 1, 4, 5, 15  # RTA_*
# RT_TABLE_MAIN, RTPROT_BOOT as ip and flannel have it, RT_SCOPE_UNIVERSE, RTN_UNICAST, RTNH_F_ONLINK
_MAIN, _BOOT, _UNIVERSE, _UNICAST, _ONLINK = 254, 3, 0, 1, 4

_HEADER = Struct("=IHHII")  # struct nlmsghdr
_ATTRIBUTE = Struct("=HH")  # struct nlattr
_NEIGHBOUR = Struct("=BxxxiHBB")  # struct ndmsg
_LINK = Struct("=BxHiII")  # struct ifinfomsg
_ROUTE = Struct("=BBBBBBBBI")  # struct rtmsg
_INDEX = Struct("=i")
_KIND = 0x3FFF  # NLA_TYPE_MASK

MULTICAST_BIT = 0x01  # of a MAC's first byte: no single device's


class Message(NamedTuple):
    """One message of a datagram."""

    kind: int
    flags: int
    sequence: int
    body: bytes


class Said(NamedTuple):
    """What a message says of a neighbour or a forwarding entry of an IPv4 network."""

    family: int
    device: int  # its index
    state: int
    address: IPv4Address | None
    mac: str | None


class Link(NamedTuple):
    """What a message says of a device."""

    device: int  # its index
    name: str
    mac: str


def messages(datagram: bytes) -> Iterator[Message]:
    """Yield the messages of a datagram, up to the first that is not whole."""
    at = 0
    while at + _HEADER.size <= len(datagram):
        length, kind, flags, sequence, _ = _HEADER.unpack_from(datagram, at)
        if length < _HEADER.size or at + length > len(datagram):
            return
        yield Message(kind, flags, sequence, datagram[at + _HEADER.size : at + length])
        at += length + 3 & ~3


def said(body: bytes) -> Said | None:
    """Return what a message about a neighbour says; None if it is not whole, or not of IPv4."""
    found = _attributes(body, _NEIGHBOUR.size)
    if found is None:
        return None
    family, index, state, _flags, _type = _NEIGHBOUR.unpack_from(body)
    address, mac = found.get(_DST), found.get(_LLADDR)
    if family not in (INET, BRIDGE):
        return None
    if (address is not None and len(address) != 4) or (mac is not None and len(mac) != 6):
        return None
    return Said(
        family,
        index,
        state,
        None if address is None else IPv4Address(address),
        None if mac is None else mac.hex(":"),
    )


def link(body: bytes) -> Link | None:
    """Return what a message about an Ethernet device says; None if it is not whole, or of another device."""
    found = _attributes(body, _LINK.size)
    if found is None:
        return None
    index = _LINK.unpack_from(body)[2]
    name, mac = found.get(_LINK_NAME, b"").rstrip(b"\0"), found.get(_LINK_ADDRESS, b"")
    if not name or len(mac) != 6:
        return None
    return Link(index, name.decode(errors="replace"), mac.hex(":"))


def route(body: bytes, index: int) -> Route | None:
    """Return a route by a gateway on a device, of the main table; None if the message is about another."""
    found = _attributes(body, _ROUTE.size)
    if found is None:
        return None
    family, length, _, _, table, _, _, kind, _ = _ROUTE.unpack_from(body)
    subnet, gateway, device = (found.get(one, b"") for one in (_ROUTE_DST, _ROUTE_GATEWAY, _ROUTE_OIF))
    if (family, table, kind, device) != (INET, _MAIN, _UNICAST, _INDEX.pack(index)):
        return None
    if len(subnet) != 4 or len(gateway) != 4:
        return None
    try:
        return Route(IPv4Network((subnet, length)), IPv4Address(gateway))
    except ValueError:
        return None


def failure(body: bytes) -> int | None:
    """Return the number of the error that a message of kind ERROR tells: 0 for none; None: not whole."""
    return -int(_INDEX.unpack_from(body)[0]) if len(body) >= _INDEX.size else None


def request(kind: int, flags: int, sequence: int, body: bytes) -> bytes:
    """Return a message to the kernel."""
    return _HEADER.pack(_HEADER.size + len(body), kind, flags | REQUEST, sequence, 0) + body


def neighbour(index: int, one: Neighbour, state: int) -> bytes:
    """Return the body that names a neighbour of a device."""
    mac = _attribute(_LLADDR, _packed(one.mac)) if one.mac else b""
    return _NEIGHBOUR.pack(INET, index, state, 0, 0) + _attribute(_DST, one.address.packed) + mac


def forwarding(index: int, one: Forwarding) -> bytes:
    """Return the body that names a forwarding entry of a VXLAN device."""
    mac, address = _attribute(_LLADDR, _packed(one.mac)), _attribute(_DST, one.address.packed)
    return _NEIGHBOUR.pack(BRIDGE, index, PERMANENT, _SELF, 0) + mac + address


def onlink(index: int, one: Route) -> bytes:
    """Return the body that names a route by a gateway that is on no network of the device."""
    head = _ROUTE.pack(INET, one.subnet.prefixlen, 0, 0, _MAIN, _BOOT, _UNIVERSE, _UNICAST, _ONLINK)
    subnet = _attribute(_ROUTE_DST, one.subnet.network_address.packed)
    return (
        head
        + subnet
        + _attribute(_ROUTE_GATEWAY, one.via.packed)
        + _attribute(_ROUTE_OIF, _INDEX.pack(index))
    )


def all_neighbours(index: int) -> bytes:
    """Return the body of a dump of a device's neighbours."""
    return _NEIGHBOUR.pack(INET, 0, 0, 0, 0) + _attribute(_IFINDEX, _INDEX.pack(index))


def all_forwarding(index: int) -> bytes:
    """Return the body of a dump of a device's forwarding entries."""
    return _NEIGHBOUR.pack(BRIDGE, index, 0, 0, 0)


def all_routes(index: int) -> bytes:
    """Return the body of a dump of the main table's routes by a device."""
    head = _ROUTE.pack(INET, 0, 0, 0, _MAIN, 0, 0, 0, 0)
    return head + _attribute(_ROUTE_OIF, _INDEX.pack(index)) + _attribute(_ROUTE_TABLE, _INDEX.pack(_MAIN))


def named(device: str) -> bytes:
    """Return the body of a question about one device."""
    return _LINK.pack(0, 0, 0, 0, 0) + _attribute(_LINK_NAME, device.encode() + b"\0")


def _attribute(kind: int, value: bytes) -> bytes:
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), kind) + value + bytes(-len(value) % 4)


def _attributes(body: bytes, at: int) -> dict[int, bytes] | None:
    """Return the attributes that follow a message's head; None if head or attributes are not whole."""
    if len(body) < at:
        return None
    found = {}
    while at < len(body):
        if len(body) - at < _ATTRIBUTE.size:
            return None
        length, kind = _ATTRIBUTE.unpack_from(body, at)
        if length < _ATTRIBUTE.size or at + length > len(body):
            return None
        found[kind & _KIND] = body[at + _ATTRIBUTE.size : at + length]
        at += length + 3 & ~3
    return found


def _packed(mac: str) -> bytes:
    return bytes.fromhex(mac.replace(":", ""))
