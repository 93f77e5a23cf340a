"""A device's entries in the kernel, read and written; and what the kernel tells of itself.

Two sockets: one asks and waits for each answer, the other only hears. What there is no room for is lost, and
the kernel says so once (ENOBUFS): who listens must then look at what there is.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator

from edge.overlay import netlink
from edge.overlay.entries import Change, Entry, Forwarding, Held, Known, Neighbour, Set
from edge.overlay.netlink import Message

_LINKS, _NEIGHBOURS = 0x1, 0x4  # RTMGRP_*
_RECEIVE_BUFFER_FORCE = 33  # SO_RCVBUFFORCE, where one may
_NETLINK, _STRICT = 270, 12  # SOL_NETLINK, NETLINK_GET_STRICT_CHK: dumps of one device alone, from Linux 4.20
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
        self._socket = _open(_LINKS | _NEIGHBOURS if misses else _LINKS)
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
        self._socket = _open(0)
        self._socket.settimeout(ANSWER_SECONDS)
        self._socket.setsockopt(_NETLINK, _STRICT, 1)
        self._sequence = 0
        self.index, self.mac = self._look()

    def held(self) -> Held:
        """Return all that the kernel holds for the device."""
        held = Held({}, {}, {})
        for message in self._ask(netlink.GET_NEIGHBOUR, netlink.DUMP, netlink.all_neighbours(self.index)):
            said = netlink.said(message.body)
            if said and said.device == self.index and said.family == netlink.INET and said.address:
                held.neighbours[said.address] = Known(said.mac or "", said.state)
        for message in self._ask(netlink.GET_NEIGHBOUR, netlink.DUMP, netlink.all_forwarding(self.index)):
            said = netlink.said(message.body)
            if said and said.device == self.index and said.mac and said.address:
                held.forwarding[said.mac] = said.address
        for message in self._ask(netlink.GET_ROUTE, netlink.DUMP, netlink.all_routes(self.index)):
            route = netlink.route(message.body, self.index)
            if route:
                held.routes[route.subnet] = route.via
        return held

    def apply(self, change: Change) -> None:
        """Make a change; to remove what is not there is none. Raises OSError."""
        if isinstance(change, Set):
            state = netlink.PERMANENT if change.lasting else netlink.REACHABLE
            kind, body = self._message(change.entry, state)
            self._do(kind, netlink.CREATE | netlink.REPLACE, body)
            return
        kind, body = self._message(change.entry, 0)
        try:
            self._do(kind + 1, 0, body)  # RTM_DEL* follow RTM_NEW*
        except OSError as error:
            if error.errno not in _ABSENT:
                raise

    def _message(self, entry: Entry, state: int) -> tuple[int, bytes]:
        if isinstance(entry, Neighbour):
            return netlink.NEW_NEIGHBOUR, netlink.neighbour(self.index, entry, state)
        if isinstance(entry, Forwarding):
            return netlink.NEW_NEIGHBOUR, netlink.forwarding(self.index, entry)
        return netlink.NEW_ROUTE, netlink.onlink(self.index, entry)

    def _look(self) -> tuple[int, str]:
        for message in self._ask(netlink.GET_LINK, netlink.ACKNOWLEDGE, netlink.named(self.name)):
            link = netlink.link(message.body)
            if link:
                return link.device, link.mac
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV), self.name)

    def _do(self, kind: int, flags: int, body: bytes) -> None:
        for _ in self._ask(kind, flags | netlink.ACKNOWLEDGE, body):
            pass

    def _ask(self, kind: int, flags: int, body: bytes) -> Iterator[Message]:
        """Send a message and yield the answers to it. Raises OSError with the kernel's number."""
        self._sequence = self._sequence % 0x7FFFFFFF + 1
        self._socket.send(netlink.request(kind, flags, self._sequence, body))
        while True:
            for message in netlink.messages(self._socket.recv(_DATAGRAM_BYTES)):
                if message.sequence != self._sequence:
                    continue  # the rest of an answer that nobody waited for
                if message.kind == netlink.DONE:
                    return
                if message.kind == netlink.ERROR:
                    number = netlink.failure(message.body)
                    if number:
                        raise OSError(number, os.strerror(number), self.name)
                    return
                yield message


def _open(groups: int) -> socket.socket:
    made = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
    made.bind((0, groups))
    return made
