"""A sender that tries to be taken for somebody else, run as a program in a pod or on a node.

Takes a JSON object: `to` and `port`, and optionally `count` and `size` (bytes) of its datagrams, `source`
address, `priority` (SO_PRIORITY), `mark` (SO_MARK), `forged` (the source in a raw IP header), `tcp`
(how many connections to ask for instead).
"""

from __future__ import annotations

import json
import socket
import struct
import sys
from typing import Any

SO_MARK = 36  # asm-generic/socket.h


def main() -> None:
    """Send."""
    spec: dict[str, Any] = json.loads(sys.argv[1])
    family = socket.AF_INET6 if ":" in spec["to"] else socket.AF_INET
    kind = socket.SOCK_STREAM if spec.get("tcp") else socket.SOCK_DGRAM
    if "forged" in spec:
        kind = socket.SOCK_RAW
    sender = socket.socket(family, kind, socket.IPPROTO_RAW if "forged" in spec else 0)
    for option, key in ((socket.SO_PRIORITY, "priority"), (SO_MARK, "mark")):
        if key in spec:
            sender.setsockopt(socket.SOL_SOCKET, option, struct.pack("=I", spec[key]))
    if "source" in spec:
        sender.bind((spec["source"], 0))
    if spec.get("tcp"):
        for _ in range(spec["tcp"]):
            asking = socket.socket(family, kind)
            asking.setblocking(False)
            asking.connect_ex((spec["to"], spec["port"]))
            asking.close()
        return
    payload = bytes(spec.get("size", 1000))
    if "forged" in spec:
        payload = ip_header(spec["forged"], spec["to"], len(payload)) + payload
    for _ in range(spec.get("count", 100)):
        sender.sendto(payload, (spec["to"], spec["port"]))


def ip_header(source: str, to: str, length: int) -> bytes:
    """An IPv4 header of UDP; the kernel fills in length and checksum (raw(7))."""
    ends = socket.inet_aton(source) + socket.inet_aton(to)
    return struct.pack("!BBHHHBBH", 0x45, 0, 20 + length, 0, 0, 64, socket.IPPROTO_UDP, 0) + ends


if __name__ == "__main__":
    main()
