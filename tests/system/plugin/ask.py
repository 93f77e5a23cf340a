"""Makes a pod's kernel speak, from wherever it is run.

Takes a JSON object: `to`, `kind` (echo, time, ack, syn, or old: data of a connection that is there already),
`count`, and for some `size` (bytes of an echo), `port`, and `rate` (questions a second; without it as many as
there can be).
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import time
from pathlib import Path
from typing import Any

from bench.studies.promise.frames import icmp, tcp

FLAGS = {"syn": 0x02, "ack": 0x10}
OLD = bytes(100)
# linux/tcp.h
TCP_REPAIR, TCP_REPAIR_QUEUE, TCP_QUEUE_SEQ = 19, 20, 21
RECEIVING, SENDING = 1, 2
# How to run it, wherever one is.
ASK = ("env", f"PYTHONPATH={Path(__file__).parents[3]}", "/usr/bin/python3", "-m", "tests.system.plugin.ask")


def main() -> None:
    """Ask."""
    spec: dict[str, Any] = json.loads(sys.argv[1])
    by_tcp = spec["kind"] in (*FLAGS, "old")
    protocol = socket.IPPROTO_TCP if by_tcp else socket.IPPROTO_ICMP
    asking = socket.socket(socket.AF_INET, socket.SOCK_RAW, protocol)
    asking.connect((spec["to"], 0))
    ends = asking.getsockname()[0], spec["to"]
    once_more = old_data(spec, ends) if spec["kind"] == "old" else b""
    begun = time.monotonic()
    for number in range(spec["count"]):
        if late := "rate" in spec and begun + number / spec["rate"] - time.monotonic():
            time.sleep(max(0, late))
        asking.send(once_more or (segment(spec, ends, number) if by_tcp else message(spec, number)))


def segment(spec: dict[str, Any], ends: tuple[str, str], number: int) -> bytes:
    """A TCP segment of no connection, each from another port."""
    return tcp(ends, (1024 + number % 60_000, spec["port"]), FLAGS[spec["kind"]])


def old_data(spec: dict[str, Any], ends: tuple[str, str]) -> bytes:
    """A segment with data that has been acknowledged, of a connection that stays open."""
    made = socket.create_connection((spec["to"], spec["port"]))
    made.sendall(OLD)
    while made.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 32)[24:28] != bytes(4):  # tcpi_unacked
        pass
    made.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
    numbers = []
    for queue in (SENDING, RECEIVING):
        made.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR_QUEUE, queue)
        numbers.append(made.getsockopt(socket.IPPROTO_TCP, TCP_QUEUE_SEQ) % (1 << 32))
    made.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 0)
    sent, got = numbers
    ports = made.getsockname()[1], spec["port"]
    made.detach()
    return tcp(ends, ports, FLAGS["ack"], OLD, ((sent - len(OLD)) % (1 << 32), got))


def message(spec: dict[str, Any], number: int) -> bytes:
    """An ICMP message that is answered."""
    kind, load = (13, bytes(12)) if spec["kind"] == "time" else (8, bytes(spec["size"]))
    return icmp(kind, 0, struct.pack("!HH", 1, number & 0xFFFF) + load)


if __name__ == "__main__":
    main()
