"""Makes a pod's kernel speak, from wherever it is run.

Takes a JSON object: `to`, `kind` (echo, time, ack or syn), `count`, and for some `size` (bytes of an echo),
`port`, and `rate` (questions a second; without it as many as there can be).
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import time
from typing import Any

FLAGS = {"syn": 0x02, "ack": 0x10}


def main() -> None:
    """Ask."""
    spec: dict[str, Any] = json.loads(sys.argv[1])
    tcp = spec["kind"] in FLAGS
    asking = socket.socket(
        socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP if tcp else socket.IPPROTO_ICMP
    )
    asking.connect((spec["to"], 0))
    ends = socket.inet_aton(asking.getsockname()[0]) + socket.inet_aton(spec["to"])
    begun = time.monotonic()
    for number in range(spec["count"]):
        if late := "rate" in spec and begun + number / spec["rate"] - time.monotonic():
            time.sleep(max(0, late))
        asking.send(segment(spec, ends, number) if tcp else message(spec, number))


def segment(spec: dict[str, Any], ends: bytes, number: int) -> bytes:
    """A TCP segment of no connection, each from another port."""
    port, flags = 1024 + number % 60_000, FLAGS[spec["kind"]]
    made = struct.pack("!HHIIBBHHH", port, spec["port"], 1, 1, 5 << 4, flags, 65535, 0, 0)
    return summed(made, 16, ends + struct.pack("!HH", socket.IPPROTO_TCP, len(made)))


def message(spec: dict[str, Any], number: int) -> bytes:
    """An ICMP message that is answered (RFC 792)."""
    kind, load = (13, bytes(12)) if spec["kind"] == "time" else (8, bytes(spec["size"]))
    return summed(struct.pack("!BBHHH", kind, 0, 0, 1, number & 0xFFFF) + load, 2)


def summed(octets: bytes, at: int, before: bytes = b"") -> bytes:
    """Put in the Internet checksum (RFC 1071)."""
    total: int = sum(struct.unpack(f"!{(len(before) + len(octets)) // 2}H", before + octets))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return octets[:at] + struct.pack("!H", ~total & 0xFFFF) + octets[at + 2 :]


if __name__ == "__main__":
    main()
