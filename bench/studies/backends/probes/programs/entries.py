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
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[5]))

from bench.studies.backends.probes.programs.networks import inside
from edge import netlink

RTMGRP_NEIGH, RTMGRP_IPV4_ROUTE = 0x4, 0x40
KINDS = {
    netlink.RTM_NEWROUTE: ("add", "route"),
    netlink.RTM_DELROUTE: ("del", "route"),
    netlink.RTM_NEWNEIGH: ("add", "forwarding"),
    netlink.RTM_DELNEIGH: ("del", "forwarding"),
}
BUFFER_BYTES = 16 * 2**20

Change = tuple[str, str, str]  # "add" or "del", "route" or "forwarding", what is led to


def changes(datagram: bytes) -> Iterator[Change]:
    """Yield what a datagram of rtnetlink's says of routes and forwarding entries."""
    for kind, _, _, body in netlink.messages(datagram):
        if kind in KINDS and len(body) >= netlink.RTMSG:
            what, of = KINDS[kind]
            led_to = _route(body) if of == "route" else _remote(body)
            if led_to:
                yield what, of, led_to


def _route(body: bytes) -> str | None:
    """Return the network of a route. The local table's are addresses of the node's own."""
    family, bits, table, kind = body[0], body[1], body[4], body[7]
    address = netlink.attributes(body, netlink.RTMSG).get(netlink.RTA_DST)
    if family != netlink.AF_INET or address is None or len(address) != 4:
        return None
    if table == netlink.RT_TABLE_LOCAL or kind != netlink.RTN_UNICAST:
        return None
    return f"{socket.inet_ntoa(address)}/{bits}"


def _remote(body: bytes) -> str | None:
    address = netlink.attributes(body, netlink.NDMSG).get(netlink.NDA_DST)
    if body[0] != netlink.AF_BRIDGE or address is None or len(address) != 4:
        return None
    return socket.inet_ntoa(address)


def main() -> None:
    """Listen until standard input ends."""
    poll = select.epoll()
    sockets = {}
    for place, path in enumerate(json.loads(sys.argv[1])):
        with inside(path):
            made = netlink.opened(groups=RTMGRP_NEIGH | RTMGRP_IPV4_ROUTE)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
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
