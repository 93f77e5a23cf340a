"""The socket by which an agent talks with others'."""

from __future__ import annotations

import os
from struct import pack

from edge.netlink import sockets

from ..node import htb
from .messages import Channel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .messages import Message

_MAJOR = int(htb.MAJOR.rstrip(":"), 16) << 16
_MOST_AT_ONCE = 256  # datagrams that are read before something else
_LONGEST = 1 << 11  # bytes


class Talk:
    """What is said to agents of other nodes, and heard of them."""

    def __init__(self, address: str, port: int, keys: list[bytes]) -> None:
        """Listen at an address of this node. Raises OSError, and ValueError for keys that cannot be used."""
        self._port = port
        self._channel = Channel(address, keys, os.urandom(8))
        self._socket = sockets.socket(sockets.AF_INET, sockets.SOCK_DGRAM | os.O_CLOEXEC)
        self._socket.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
        self._socket.setblocking(False)
        self._socket.bind((address, port))
        self._class: int | None = None

    @property
    def descriptor(self) -> int:
        """What has something to read when another says something."""
        return self._socket.fileno()

    @property
    def refused(self) -> dict[str, int]:
        """How many messages were not believed, by the reason."""
        return self._channel.counted

    def close(self) -> None:
        """End it."""
        self._socket.close()

    def tell(self, node: str, kind: int, body: bytes, now: float, minor: int | None) -> None:
        """Say something to a node. With a class, what goes there has it for a while longer (`node.peers`)."""
        self._mark(minor)
        for datagram in self._channel.seal(node, kind, body, now):
            self._send(node, datagram)

    def heard(self, now: float) -> Iterator[tuple[str, Message]]:
        """Who said what, of what is to be believed; those whose messages were not of now are told so."""
        for _ in range(_MOST_AT_ONCE):
            try:
                datagram, (node, port) = self._socket.recvfrom(_LONGEST)
            except OSError:
                break
            message = self._channel.open(node, datagram, now) if port == self._port else None
            if message is not None:
                yield node, message
        for node, datagram in self._channel.answers(now):
            self._mark(None)
            self._send(node, datagram)

    def _mark(self, minor: int | None) -> None:
        if minor != self._class:
            priority = 0 if minor is None else _MAJOR | minor
            self._socket.setsockopt(sockets.SOL_SOCKET, sockets.SO_PRIORITY, pack("=I", priority))
            self._class = minor

    def _send(self, node: str, datagram: bytes) -> None:
        try:  # noqa: SIM105 - a message may be lost
            self._socket.sendto(datagram, (node, self._port))
        except OSError:
            pass
