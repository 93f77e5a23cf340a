"""A device's entries in the kernel, read and written; and what the kernel tells of itself.

Two sockets: one asks and waits for each answer, the other only hears. What there is no room for is lost, and
the kernel says so once (ENOBUFS): who listens must then look at what there is.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from struct import pack

from edge import netlink as nl
from edge.overlay.entries import (
    Change,
    Held,
    Known,
    Route,
    Set,
    body_of,
    read_link,
    read_neighbour,
    read_route,
)

_LINKS, _NEIGHBOURS = 0x1, 0x4  # RTMGRP_*
_RECEIVE_BUFFER_FORCE = 33  # SO_RCVBUFFORCE, where one may
_DATAGRAM_BYTES = 1 << 18
ANSWER_SECONDS = 5.0

# What there is no more cannot be removed, and that is all right.
_ABSENT = (errno.ENOENT, errno.ESRCH, errno.EADDRNOTAVAIL)


class OverrunError(Exception):
    """The kernel said more than there was room for, and it is lost."""


class Ears:
    """Hears of this network namespace's links, and, if it is to answer misses, of its neighbours.

    Each change of any neighbour wakes who listens to them, so nobody does who has no need to.
    """

    def __init__(self, buffer: int, misses: bool) -> None:
        self._socket = nl.opened(groups=_LINKS | _NEIGHBOURS if misses else _LINKS)
        self._socket.setblocking(False)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, _RECEIVE_BUFFER_FORCE, buffer)
        except OSError:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)

    def fileno(self) -> int:
        """Return what is readable when there is something to hear."""
        return self._socket.fileno()

    def hear(self) -> list[bytes]:
        """Return the datagrams that came from the kernel; others may send some, too. Raises OverrunError."""
        heard: list[bytes] = []
        while True:
            try:
                datagram, (sender, _) = self._socket.recvfrom(_DATAGRAM_BYTES)
            except BlockingIOError:
                return heard
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                raise OverrunError from None
            if sender == 0:
                heard.append(datagram)


class Device:
    """A VXLAN device of this network namespace. Raises OSError if there is none of that name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._socket = nl.opened()
        self._socket.settimeout(ANSWER_SECONDS)
        self._socket.setsockopt(nl.SOL_NETLINK, nl.STRICT, 1)
        self._sequence = 0
        self.index, self.mac = self._look()

    def held(self) -> Held:
        """Return all that the kernel holds for the device."""
        held = Held({}, {}, {})
        device = pack("=i", self.index)
        neighbours = nl.ndmsg(nl.AF_INET) + nl.attribute(nl.NDA_IFINDEX, device)
        for body in self._ask(nl.RTM_GETNEIGH, nl.DUMP, neighbours):
            said = read_neighbour(body)
            if said and said.device == self.index and said.family == nl.AF_INET and said.address:
                held.neighbours[said.address] = Known(said.mac or "", said.state)
        for body in self._ask(nl.RTM_GETNEIGH, nl.DUMP, nl.ndmsg(nl.AF_BRIDGE, self.index)):
            said = read_neighbour(body)
            if said and said.device == self.index and said.mac and said.address:
                held.forwarding[said.mac] = said.address
        routes = nl.rtmsg(table=nl.RT_TABLE_MAIN) + nl.attribute(nl.RTA_OIF, device)
        for body in self._ask(nl.RTM_GETROUTE, nl.DUMP, routes + nl.u32(nl.RTA_TABLE, nl.RT_TABLE_MAIN)):
            route = read_route(body, self.index)
            if route:
                held.routes[route.subnet] = route.via
        return held

    def apply(self, change: Change) -> None:
        """Make a change; to remove what is not there is none. Raises OSError."""
        entry = change.entry
        kind = nl.RTM_NEWROUTE if isinstance(entry, Route) else nl.RTM_NEWNEIGH
        if isinstance(change, Set):
            state = nl.NUD_PERMANENT if change.lasting else nl.NUD_REACHABLE
            self._do(kind, nl.CREATE | nl.REPLACE, body_of(self.index, entry, state))
            return
        with nl.Ignoring(*_ABSENT):
            self._do(kind + 1, 0, body_of(self.index, entry, 0))  # RTM_DEL* follow RTM_NEW*

    def _look(self) -> tuple[int, str]:
        for body in self._ask(nl.RTM_GETLINK, nl.ACK, nl.ifinfomsg() + nl.named(nl.IFLA_IFNAME, self.name)):
            link = read_link(body)
            if link:
                return link.device, link.mac
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV), self.name)

    def _do(self, kind: int, flags: int, body: bytes) -> None:
        for _ in self._ask(kind, flags | nl.ACK, body):
            pass

    def _ask(self, kind: int, flags: int, body: bytes) -> Iterator[bytes]:
        """Send a message and yield the answers to it. Raises OSError with the kernel's number."""
        self._sequence = self._sequence % 0x7FFFFFFF + 1
        try:
            yield from nl.ask(kind, flags, body, self._socket, sequence=self._sequence)
        except OSError as error:
            if error.errno is None:  # it has not answered in time
                raise
            raise OSError(error.errno, error.strerror, self.name) from None
