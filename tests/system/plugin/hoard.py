"""A sender that would fill a table of the node, run as a program in a pod. One datagram to each address.

Takes a JSON object: `to`, a list of addresses, and `ports`, how many of each. With `fragments` each gets
so many first fragments from `source`, each of another packet whose rest never comes (it takes CAP_NET_RAW).
"""

from __future__ import annotations

import json
import socket
import struct
import sys
from typing import Any

LOAD = 256  # bytes of a fragment; shorter ones are not routed


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
        for number in range(spec.get("fragments", spec.get("ports", 1))):
            packet = b"x"
            if "ports" in spec:
                to = (address, 1024 + number, *to[2:])
            if raw:
                ends = [socket.inet_pton(family, end) for end in (spec["source"], address)]
                packet = fragment(number, b"".join(ends))
            sender.sendto(packet, to)


def fragment(number: int, ends: bytes) -> bytes:
    """The beginning of a packet of UDP, with headers (RFC 791; RFC 8200, section 4.5)."""
    load = bytes(LOAD)
    if len(ends) == 8:
        return struct.pack("!BBHHHBBH", 0x45, 0, 20 + LOAD, 1 + number, 0x2000, 64, 17, 0) + ends + load
    header = struct.pack("!IHBB", 6 << 28, 8 + LOAD, 44, 64) + ends
    return header + struct.pack("!BBHI", 17, 0, 1, number) + load


if __name__ == "__main__":
    main()
