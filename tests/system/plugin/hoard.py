"""A sender that would fill a table of the node, run as a program in a pod. One datagram to each address.

Takes a JSON object: `to`, a list of addresses. With `fragments` each gets so many first fragments, each of
another packet whose rest never comes (which takes CAP_NET_RAW), from `source`.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
from typing import Any


def main() -> None:
    """Send."""
    spec: dict[str, Any] = json.loads(sys.argv[1])
    family = socket.AF_INET6 if ":" in spec["to"][0] else socket.AF_INET
    raw = "fragments" in spec
    kind, protocol = (socket.SOCK_RAW, socket.IPPROTO_RAW) if raw else (socket.SOCK_DGRAM, 0)
    sender = socket.socket(family, kind, protocol)
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    for address in spec["to"]:
        # The last part is the interface's, of a link-local address.
        to = (address, 0 if raw else 9, 0, socket.if_nametoindex("eth0")) if ":" in address else (address, 9)
        for number in range(spec.get("fragments", 1)):
            packet = b"x"
            if raw:
                ends = [socket.inet_pton(family, end) for end in (spec["source"], address)]
                packet = fragment(number, b"".join(ends))
            sender.sendto(packet, to)


def fragment(number: int, ends: bytes) -> bytes:
    """The first eight bytes of a packet of UDP, with headers (RFC 791; RFC 8200, section 4.5)."""
    if len(ends) == 8:
        return struct.pack("!BBHHHBBH", 0x45, 0, 28, 1 + number, 0x2000, 64, 17, 0) + ends + bytes(8)
    return (
        struct.pack("!IHBB", 6 << 28, 16, 44, 64) + ends + struct.pack("!BBHI", 17, 0, 1, number) + bytes(8)
    )


if __name__ == "__main__":
    main()
