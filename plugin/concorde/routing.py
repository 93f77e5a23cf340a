"""The node's IPv4 addresses and routes, as the kernel has them: rtnetlink(7), linux/rtnetlink.h, if_addr.h.

Addresses are integers, host byte order.
"""

from __future__ import annotations

from struct import pack, unpack_from

from edge import netlink as nl

from . import namespaces, rtnetlink
from .addresses import dotted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

    from edge.netlink import Attributes

_CLONED = 0x200  # RTM_F_CLONED
# EACCES, EINVAL, ENETUNREACH, EHOSTUNREACH: of prohibit, blackhole, none, unreachable
_NO_WAY = (13, 22, 101, 113)
UNICAST = nl.RTN_UNICAST
MAIN, LOCAL = nl.RT_TABLE_MAIN, nl.RT_TABLE_LOCAL


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
    for message in nl.ask(nl.RTM_GETADDR, nl.DUMP, pack("=BBBBI", nl.AF_INET, 0, 0, 0, 0)):
        prefix, index = unpack_from("=xBxxI", message)
        said = nl.attributes(message, nl.IFADDRMSG)
        own = said.get(nl.IFA_LOCAL, said.get(nl.IFA_ADDRESS, bytes(4)))
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
    for message in nl.ask(nl.RTM_GETROUTE, nl.DUMP, nl.rtmsg(), kernel):
        prefix, table, kind, flags = unpack_from("=xBxxBxxBI", message)
        said = nl.attributes(message, nl.RTMSG)
        if message[0] == nl.AF_INET and not flags & _CLONED:
            (metric,) = unpack_from("=I", said.get(nl.RTA_PRIORITY, bytes(4)))
            (table,) = unpack_from("=I", said.get(nl.RTA_TABLE, pack("=I", table)))
            indices, gateway = _next_hop(said)
            to = Block(int.from_bytes(said.get(nl.RTA_DST, bytes(4)), "big"), prefix)
            found.append(Route(to, indices, gateway, table, kind, metric))
    return found


def device_to(address: int) -> str:
    """The device by which packets for an address leave; empty if there is no way. Raises OSError."""
    body = nl.rtmsg(32) + nl.attribute(nl.RTA_DST, address.to_bytes(4, "big"))
    with nl.Ignoring(*_NO_WAY):
        for message in nl.ask(nl.RTM_GETROUTE, 0, body):
            indices, _ = _next_hop(nl.attributes(message, nl.RTMSG))
            return rtnetlink.name_of(indices[0]) if indices else ""
    return ""


def _next_hop(said: Attributes) -> tuple[list[int], int]:
    """The devices' numbers, and the gateway of the first; a multipath route has several (rtnexthop)."""
    hops, at, paths = [], 0, said.get(nl.RTA_MULTIPATH, b"")
    while at + 8 <= len(paths):
        length, index = unpack_from("=Hxxi", paths, at)
        if length < 8:
            break
        hops.append((index, nl.attributes(paths[at : at + length], 8)))
        at += length + 3 & ~3
    if not hops and nl.RTA_OIF in said:
        hops = [(unpack_from("=i", said[nl.RTA_OIF])[0], said)]
    gateway = hops[0][1].get(nl.RTA_GATEWAY, b"") if hops else b""
    return [index for index, _ in hops], int.from_bytes(gateway, "big")
