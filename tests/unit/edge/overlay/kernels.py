"""A kernel in memory, and what it says: messages as the real one lays them out."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address, IPv4Network

from edge import netlink
from edge.overlay.entries import Change, Forwarding, Held, Known, Neighbour, Route, Set
from edge.overlay.leases import Lease

INDEX = 7
NETWORK = IPv4Network("10.1.0.0/16")


def lease(number: int, mac: str = "", address: str = "") -> Lease:
    """The lease of a node by its number: 10.1.NUMBER.0/24."""
    return Lease(
        IPv4Network(f"10.1.{number}.0/24"),
        IPv4Address(address or f"192.168.122.{number}"),
        mac or f"0e:00:00:00:00:{number:02x}",
    )


OWN = lease(1)


class MemoryKernel:
    """A device's entries; see edge.overlay.answering.Kernel. ``failing``: the error all changes end with."""

    index = INDEX
    mac = OWN.mac

    def __init__(self) -> None:
        self.now = Held({}, {}, {})
        self.changes: list[Change] = []
        self.failing = 0

    def held(self) -> Held:
        return Held(dict(self.now.neighbours), dict(self.now.forwarding), dict(self.now.routes))

    def apply(self, change: Change) -> None:
        if self.failing:
            raise OSError(self.failing, "as the test wants it")
        self.changes.append(change)
        entry = change.entry
        if isinstance(change, Set):
            if isinstance(entry, Neighbour):
                state = netlink.NUD_PERMANENT if change.lasting else netlink.NUD_REACHABLE
                self.now.neighbours[entry.address] = Known(entry.mac, state)
            elif isinstance(entry, Forwarding):
                self.now.forwarding[entry.mac] = entry.address
            else:
                self.now.routes[entry.subnet] = entry.via
        elif isinstance(entry, Neighbour):
            self.now.neighbours.pop(entry.address, None)
        elif isinstance(entry, Forwarding):
            self.now.forwarding.pop(entry.mac, None)
        elif isinstance(entry, Route):
            self.now.routes.pop(entry.subnet, None)


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def of_neighbour(
    address: str = "", mac: str = "", state: int = netlink.NUD_INCOMPLETE, family: int = 2, index: int = INDEX
) -> bytes:
    """The body of a message about a neighbour."""
    body = struct.pack("=BxxxiHBB", family, index, state, 0, 0)
    if address:
        body += attribute(1, IPv4Address(address).packed)
    if mac:
        body += attribute(2, bytes.fromhex(mac.replace(":", "")))
    return body


def message(kind: int, body: bytes) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 0, 0) + body


def l3_miss(address: str) -> bytes:
    return message(netlink.RTM_GETNEIGH, of_neighbour(address))


def l2_miss(mac: str) -> bytes:
    return message(netlink.RTM_GETNEIGH, of_neighbour(mac=mac, state=netlink.NUD_STALE))


def refresh(address: str, mac: str) -> bytes:
    return message(netlink.RTM_GETNEIGH, of_neighbour(address, mac, netlink.NUD_PROBE))
