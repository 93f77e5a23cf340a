"""The node's IPv4 addresses and routes, as the kernel has them: rtnetlink(7), linux/rtnetlink.h, if_addr.h.

Addresses are integers, host byte order.
"""

from __future__ import annotations

from struct import pack, unpack_from

from . import namespaces, netlink, rtnetlink
from .addresses import dotted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

    from .netlink import Attributes

_GETADDR, _GETROUTE = 22, 26  # RTM_*
_INET = 2  # AF_INET
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_DESTINATION, _OUT, _GATEWAY, _METRIC, _MULTIPATH, _TABLE, _VIA = 1, 4, 5, 6, 9, 15, 18  # RTA_*
_CLONED = 0x200  # RTM_F_CLONED
_NO_WAY = (
    13,
    22,
    101,
    113,
)  # EACCES, EINVAL, ENETUNREACH, EHOSTUNREACH: of prohibit, blackhole, none, unreachable
UNICAST = 1  # RTN_UNICAST
MAIN, LOCAL = 254, 255  # RT_TABLE_*


class Block:
    """The addresses that have the same first bits."""

    def __init__(self, first: int, prefix: int) -> None:
        self.first = first
        self.prefix = prefix

    def holds(self, other: Block) -> bool:
        """Whether the other's addresses are all among these."""
        return other.prefix >= self.prefix and (self.first ^ other.first) >> (32 - self.prefix) == 0

    def __str__(self) -> str:
        return f"{dotted(self.first)}/{self.prefix}"


class Address:
    """An address of the device with this number, and how many first bits its neighbours share with it."""

    def __init__(self, index: int, address: int, prefix: int) -> None:
        self.index = index
        self.address = address
        self.prefix = prefix

    @property
    def block(self) -> Block:
        """What is reached by that device because of it."""
        return Block(self.address >> (32 - self.prefix) << (32 - self.prefix), self.prefix)

    def __str__(self) -> str:
        return f"{dotted(self.address)}/{self.prefix}"


class Route:
    """A route: where to, by the devices with which numbers, over which gateway (0 if none)."""

    def __init__(
        self, to: Block, indices: list[int], gateway: int, table: int, kind: int, metric: int
    ) -> None:
        self.to = to
        self.indices = indices
        self.gateway = gateway
        self.table = table
        self.kind = kind
        self.metric = metric


def addresses() -> list[Address]:
    """All addresses. Raises OSError."""
    found = []
    for message in netlink.ask(_GETADDR, netlink.DUMP, pack("=BBBBI", _INET, 0, 0, 0, 0)):
        prefix, index = unpack_from("=xBxxI", message)
        said = netlink.attributes(message, 8)
        own = said.get(_IFA_LOCAL, said.get(_IFA_ADDRESS, bytes(4)))
        found.append(Address(index, int.from_bytes(own, "big"), prefix))
    return found


def has_default(netns: str) -> bool:
    """Whether a network namespace has a default route. Raises OSError."""
    kernel = namespaces.opened(netns)
    try:
        return any(route.to.prefix == 0 and route.table == MAIN for route in routes(kernel))
    finally:
        kernel.close()


def routes(kernel: socket | None = None) -> list[Route]:
    """All routes, of all tables, of a socket's namespace or of ours. Raises OSError."""
    found = []
    for message in netlink.ask(_GETROUTE, netlink.DUMP, _of_routes(), kernel):
        prefix, table, kind, flags = unpack_from("=xBxxBxxBI", message)
        said = netlink.attributes(message, 12)
        if message[0] == _INET and not flags & _CLONED:
            (metric,) = unpack_from("=I", said.get(_METRIC, bytes(4)))
            (table,) = unpack_from("=I", said.get(_TABLE, pack("=I", table)))
            indices, gateway = _next_hop(said)
            to = Block(int.from_bytes(said.get(_DESTINATION, bytes(4)), "big"), prefix)
            found.append(Route(to, indices, gateway, table, kind, metric))
    return found


def device_to(address: int) -> str:
    """The device by which packets for an address leave; empty if there is no way. Raises OSError."""
    body = _of_routes(32) + netlink.attribute(_DESTINATION, address.to_bytes(4, "big"))
    try:
        for message in netlink.ask(_GETROUTE, 0, body):
            indices, _ = _next_hop(netlink.attributes(message, 12))
            return rtnetlink.name_of(indices[0]) if indices else ""
    except OSError as error:
        if error.errno not in _NO_WAY:
            raise
    return ""


def _of_routes(bits: int = 0) -> bytes:
    return pack("=BBBBBBBBI", _INET, bits, 0, 0, 0, 0, 0, 0, 0)


def _next_hop(said: Attributes) -> tuple[list[int], int]:
    """The devices' numbers, and the gateway of the first; a multipath route has several (rtnexthop)."""
    hops, at, paths = [], 0, said.get(_MULTIPATH, b"")
    while at + 8 <= len(paths):
        length, index = unpack_from("=Hxxi", paths, at)
        if length < 8:
            break
        hops.append((index, netlink.attributes(paths[at : at + length], 8)))
        at += length + 3 & ~3
    if not hops and _OUT in said:
        hops = [(unpack_from("=i", said[_OUT])[0], said)]
    gateway = hops[0][1].get(_GATEWAY, b"") if hops else b""
    return [index for index, _ in hops], int.from_bytes(gateway, "big")
