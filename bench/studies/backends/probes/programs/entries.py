"""When the kernels of several nodes change their entries: routes, and what is behind which remote node.

Listens to rtnetlink in all nodes' network namespaces from one process (rtnetlink(7)): routes of IPv4, and
forwarding entries with a remote address (AF_BRIDGE with NDA_DST), as overlays have them.

Run as a program by its path, with the paths of the namespaces as JSON in its argument. It says "ready", goes
on until its standard input ends, and then says what it saw as JSON: a list of [time in nanoseconds of the
monotonic clock, place in the list of namespaces, "add" or "del", "route" or "forwarding", what is led to],
which is a network as in 10.1.2.0/24, or a node's address.
"""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[5]))

from bench.studies.backends.probes.programs.networks import inside

# <linux/rtnetlink.h>, <linux/neighbour.h>
RTMGRP_NEIGH, RTMGRP_IPV4_ROUTE = 0x4, 0x40
KINDS = {24: ("add", "route"), 25: ("del", "route"), 28: ("add", "forwarding"), 29: ("del", "forwarding")}
RTA_DST = NDA_DST = 1
AF_BRIDGE = 7
HEADER = struct.Struct("=IHHII")  # nlmsghdr
ROUTE, NEIGHBOUR = 12, 12  # bytes of rtmsg and ndmsg
BUFFER_BYTES = 16 * 2**20

Change = tuple[str, str, str]  # "add" or "del", "route" or "forwarding", what is led to


def changes(datagram: bytes) -> Iterator[Change]:
    """Yield what a datagram of rtnetlink's says of routes and forwarding entries."""
    at = 0
    while at + HEADER.size <= len(datagram):
        length, kind, *_ = HEADER.unpack_from(datagram, at)
        if length < HEADER.size:
            return
        body = datagram[at + HEADER.size : at + length]
        at += (length + 3) & ~3
        if kind in KINDS and len(body) >= ROUTE:
            what, of = KINDS[kind]
            led_to = _route(body) if of == "route" else _remote(body)
            if led_to:
                yield what, of, led_to


def _route(body: bytes) -> str | None:
    """Return the network of a route. The local table's are addresses of the node's own."""
    family, bits, table, kind = body[0], body[1], body[4], body[7]
    address = _attributes(body[ROUTE:]).get(RTA_DST)
    if family != socket.AF_INET or address is None or len(address) != 4 or table == 255 or kind != 1:
        return None
    return f"{socket.inet_ntoa(address)}/{bits}"


def _remote(body: bytes) -> str | None:
    address = _attributes(body[NEIGHBOUR:]).get(NDA_DST)
    if body[0] != AF_BRIDGE or address is None or len(address) != 4:
        return None
    return socket.inet_ntoa(address)


def _attributes(content: bytes) -> dict[int, bytes]:
    found, at = {}, 0
    while at + 4 <= len(content):
        length, kind = struct.unpack_from("=HH", content, at)
        if length < 4:
            break
        found[kind] = content[at + 4 : at + length]
        at += (length + 3) & ~3
    return found


def main() -> None:
    """Listen until standard input ends."""
    poll = select.epoll()
    sockets = {}
    for place, path in enumerate(json.loads(sys.argv[1])):
        with inside(path):
            made = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        made.bind((0, RTMGRP_NEIGH | RTMGRP_IPV4_ROUTE))
        made.setblocking(False)
        poll.register(made, select.EPOLLIN)
        sockets[made.fileno()] = place, made
    poll.register(0, select.EPOLLIN | select.EPOLLHUP)
    print("ready", flush=True)
    seen: list[tuple[int, int, str, str, str]] = []
    ended = lost = False
    while not ended:
        for descriptor, _ in poll.poll():
            if descriptor == 0:
                ended = not os.read(0, 1)
                continue
            place, listening = sockets[descriptor]
            try:
                datagram = listening.recv(65536)
            except OSError:  # ENOBUFS: some of it is lost
                lost = True
                continue
            now = time.monotonic_ns()
            seen += [(now, place, *change) for change in changes(datagram)]
    print(json.dumps({"changes": seen, "lost": lost}), flush=True)


if __name__ == "__main__":
    main()
