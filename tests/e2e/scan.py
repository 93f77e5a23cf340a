"""Which TCP and UDP ends answer, of all these addresses and ports; standard library only.

scan.py tcp,udp ADDRESSES PORTS    addresses like 172.17.16.1-172.17.16.9,172.17.16.120, ports like 1-1024
Prints as JSON what answers, like "tcp 172.17.16.120:443", with " refused" behind what says that nobody
listens there.
"""

from __future__ import annotations

import errno
import itertools
import json
import selectors
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from ipaddress import IPv4Address

AT_ONCE, SECONDS = 900, 1.0  # how many, and how long is waited for those that say nothing
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: nothing stays


def numbers(text: str, of: Callable[[str], int]) -> Iterator[int]:
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(of(first), of(last or first) + 1)


def opened(protocol: str, end: tuple[str, int]) -> socket.socket | None:
    kind = socket.SOCK_STREAM if protocol == "tcp" else socket.SOCK_DGRAM
    one = socket.socket(socket.AF_INET, kind)
    one.setblocking(False)
    if protocol == "tcp":
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    try:
        if one.connect_ex(end) in (0, errno.EINPROGRESS):
            if protocol == "udp":
                one.send(b"who?")
            return one
    except OSError:  # there is no route
        pass
    one.close()
    return None


def answer(protocol: str, one: socket.socket) -> str | None:
    """Return what an end says: it is there, it refuses, or nothing."""
    if protocol == "tcp":
        error = one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    else:
        try:
            one.recv(100)
            error = 0
        except OSError as failed:
            error = failed.errno or errno.EIO
    return {0: "", errno.ECONNREFUSED: " refused"}.get(error)


def main() -> None:
    addresses = [
        str(IPv4Address(number)) for number in numbers(sys.argv[2], lambda one: int(IPv4Address(one)))
    ]
    ends = list(itertools.product(sys.argv[1].split(","), addresses, numbers(sys.argv[3], int)))
    found = []
    for first in range(0, len(ends), AT_ONCE):
        begun: dict[int, socket.socket] = {}
        with selectors.DefaultSelector() as chosen:
            for protocol, address, port in ends[first : first + AT_ONCE]:
                if one := opened(protocol, (address, port)):
                    wanted = selectors.EVENT_WRITE if protocol == "tcp" else selectors.EVENT_READ
                    begun[one.fileno()] = one
                    chosen.register(one, wanted, (protocol, f"{address}:{port}"))
            deadline = time.monotonic() + SECONDS
            while chosen.get_map() and (left := deadline - time.monotonic()) > 0:
                for key, _ in chosen.select(left):
                    protocol, end = key.data
                    with begun.pop(key.fd) as one:
                        chosen.unregister(one)
                        if (said := answer(protocol, one)) is not None:
                            found.append(f"{protocol} {end}{said}")
            for one in begun.values():
                one.close()
    json.dump(sorted(found), sys.stdout)


if __name__ == "__main__":
    main()
