"""Ports of this machine for what a test starts, and may end and start again: nobody takes them meanwhile.

What the kernel gives to whoever asks for any port (ip_local_port_range), somebody else may have when it is
used. So these lie below, and of the processes that run tests one holds each, for as long as it lives.
"""

from __future__ import annotations

import random
import socket
from pathlib import Path

FIRST, FEWEST = 10_000, 10_000
_held: dict[int, socket.socket] = {}


def free_ports(count: int) -> list[int]:
    """Return ports that nobody has, by TCP and UDP, on any address of this machine."""
    given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
    below = range(FIRST, max(given, FIRST + FEWEST))
    found: list[int] = []
    for port in random.SystemRandom().sample(below, len(below)):
        if len(found) == count:
            break
        if _hold(port):
            found.append(port)
    assert len(found) == count
    return found


def _hold(port: int) -> bool:
    """Hold a port, if nobody does: an abstract Unix socket has one binder, and ends with its process."""
    own = socket.socket(socket.AF_UNIX)
    try:
        own.bind(f"\0concorde-tests/port/{port}")
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            with socket.socket(socket.AF_INET, kind) as tried:
                tried.bind(("", port))
    except OSError:
        own.close()
        return False
    _held[port] = own
    return True
