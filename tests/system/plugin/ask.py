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
from pathlib import Path
from typing import Any

from bench.measurement.attacks.frames import icmp, tcp

FLAGS = {"syn": 0x02, "ack": 0x10}
# How to run it, wherever one is.
ASK = ("env", f"PYTHONPATH={Path(__file__).parents[3]}", "/usr/bin/python3", "-m", "tests.system.plugin.ask")


def main() -> None:
    """Ask."""
    spec: dict[str, Any] = json.loads(sys.argv[1])
    by_tcp = spec["kind"] in FLAGS
    protocol = socket.IPPROTO_TCP if by_tcp else socket.IPPROTO_ICMP
    asking = socket.socket(socket.AF_INET, socket.SOCK_RAW, protocol)
    asking.connect((spec["to"], 0))
    ends = asking.getsockname()[0], spec["to"]
    begun = time.monotonic()
    for number in range(spec["count"]):
        if late := "rate" in spec and begun + number / spec["rate"] - time.monotonic():
            time.sleep(max(0, late))
        asking.send(segment(spec, ends, number) if by_tcp else message(spec, number))


def segment(spec: dict[str, Any], ends: tuple[str, str], number: int) -> bytes:
    """A TCP segment of no connection, each from another port."""
    return tcp(ends, (1024 + number % 60_000, spec["port"]), FLAGS[spec["kind"]])


def message(spec: dict[str, Any], number: int) -> bytes:
    """An ICMP message that is answered."""
    kind, load = (13, bytes(12)) if spec["kind"] == "time" else (8, bytes(spec["size"]))
    return icmp(kind, 0, struct.pack("!HH", 1, number & 0xFFFF) + load)


if __name__ == "__main__":
    main()
