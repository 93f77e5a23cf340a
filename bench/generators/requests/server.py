"""Answers requests as they come; the other end of ``client``.

Run as a program in a pod's network, with its wishes as JSON in its first argument: ``protocol`` (tcp or udp),
``port``, ``size`` and ``answer`` in bytes, ``connections`` (new or kept), ``congestion``, ``served``. It
listens by TCP whatever the protocol is: the first connection is for its end, and carries nothing. Where it is
one of several behind a service (``served``), no connection is known to be for it, and the end of its standard
input is its own. An empty line on its standard error says that it listens. In the end it writes how many
requests it has seen to its standard output, as JSON. Standard library alone, Python 3.9 or newer: it runs on
nodes.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

HEADER_BYTES = 16  # of a request, which its answer begins with
READ_BYTES = 65_536
BACKLOG = 4096
# x86 and arm; asm-generic/socket.h. Python has no name for it.
SO_RCVBUFFORCE = 33
HELD_BYTES = 2**23  # what comes while nobody reads
PRIORITY = 1  # the lowest of the real-time ones is before all ordinary processes


class Server:
    """All that is asked on one port, until the client goes."""

    def __init__(self, wishes: dict[str, Any]) -> None:
        self.wishes = wishes
        self.requests = self.connections = 0
        self.epoll = select.epoll()
        self.handlers: dict[int, Callable[[int], None]] = {}
        self.control: int = -1
        self.over = False
        address = ("", wishes["port"])
        self.listener = socket.create_server(address, backlog=BACKLOG)
        congest(self.listener, wishes["congestion"])
        self.watch(self.listener, lambda _: self.accept())
        if wishes["served"]:
            self.control = sys.stdin.fileno()
            self.epoll.register(self.control, select.EPOLLIN)
            self.handlers[self.control] = self.leave
        if wishes["protocol"] == "udp":
            self.datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            with suppress(OSError):  # if it may: else the system's default
                self.datagrams.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, HELD_BYTES)
            self.datagrams.bind(address)
            self.watch(self.datagrams, lambda _: self.reply())

    def watch(self, one: socket.socket, handler: Callable[[int], None]) -> None:
        """Let a handler do what a socket is ready for."""
        one.setblocking(False)
        self.epoll.register(one, select.EPOLLIN)
        self.handlers[one.fileno()] = handler

    def run(self) -> None:
        """Answer until the client has gone."""
        while not self.over:
            for number, events in self.epoll.poll():
                handler = self.handlers.get(number)
                if handler is not None:
                    handler(events)

    def accept(self) -> None:
        """Take what connections there are."""
        while True:
            try:
                one, _ = self.listener.accept()
            except BlockingIOError:
                return
            if self.control < 0:
                self.control = one.fileno()
                self.watch(one, partial(self.end, one))
                continue
            self.connections += 1
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.watch(one, Connection(self, one).handle)

    def end(self, control: socket.socket, _events: int) -> None:
        """Look whether the client has gone: it never says anything."""
        try:
            self.over = not control.recv(1)
        except BlockingIOError:
            return
        except OSError:
            self.over = True

    def leave(self, _events: int) -> None:
        """Come to an end: nobody says anything on standard input."""
        self.over = True

    def reply(self) -> None:
        """Answer what datagrams there are."""
        filling = bytes(self.wishes["answer"] - HEADER_BYTES)
        while True:
            try:
                data, asker = self.datagrams.recvfrom(READ_BYTES)
                if len(data) == self.wishes["size"]:
                    self.requests += 1
                    self.datagrams.sendto(data[:HEADER_BYTES] + filling, asker)
            except BlockingIOError:
                return
            except OSError:  # of an asker who has gone, or of a queue that is full
                continue

    def forget(self, one: socket.socket) -> None:
        """Close a connection."""
        self.handlers.pop(one.fileno(), None)
        self.epoll.unregister(one)
        one.close()


class Connection:
    """One TCP connection: its requests are answered in their order."""

    def __init__(self, server: Server, one: socket.socket) -> None:
        self.server, self.socket = server, one
        self.size: int = server.wishes["size"]
        self.filling = bytes(server.wishes["answer"] - HEADER_BYTES)
        self.received, self.unsent = bytearray(), bytearray()
        self.full = False  # there is no room for more

    def handle(self, events: int) -> None:
        """Read what there is, and answer whole requests."""
        try:
            if events & ~select.EPOLLOUT:
                data = self.socket.recv(READ_BYTES)
                if not data:
                    self.server.forget(self.socket)
                    return
                self._answer(data)
            self._flush()
        except BlockingIOError:
            return
        except OSError:
            self.server.forget(self.socket)

    def _answer(self, data: bytes) -> None:
        self.received += data
        whole = 0
        while len(self.received) - whole >= self.size:
            self.server.requests += 1
            self.unsent += self.received[whole : whole + HEADER_BYTES]
            self.unsent += self.filling
            whole += self.size
        del self.received[:whole]

    def _flush(self) -> None:
        if not self.unsent:
            return
        with suppress(BlockingIOError):
            del self.unsent[: self.socket.send(self.unsent)]
        if self.full != bool(self.unsent):
            self.full = not self.full
            wanted = select.EPOLLIN | (select.EPOLLOUT if self.full else 0)
            self.server.epoll.modify(self.socket, wanted)
        # The client waits for this end, so that it is not its ports that stay taken (RFC 9293, TIME-WAIT).
        if not self.full and self.server.wishes["connections"] == "new":
            self.server.forget(self.socket)


def congest(one: socket.socket, wanted: str) -> None:
    """Let a socket have a congestion control. It is not asked for if it is there, for not everybody may."""
    has = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0")
    if has != wanted.encode():
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, wanted.encode())


def main() -> None:
    """Do as told."""
    wishes = json.loads(sys.argv[1])
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        server = Server(wishes)
    except OSError as error:
        sys.exit(f"port {wishes['port']}: {error}")
    gc.disable()
    with suppress(OSError):  # the client says for both whether it may
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    sys.stderr.write("\n")
    sys.stderr.flush()
    server.run()
    sys.stdout.write(json.dumps({"requests": server.requests, "connections": server.connections}) + "\n")


if __name__ == "__main__":
    main()
