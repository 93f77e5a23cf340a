"""Times round trips of small UDP datagrams, from one place to another; standard library only.

round_trips.py answer ADDRESS PORT          sends back what comes, until it is killed
round_trips.py ask ADDRESS PORT COUNT GAP   sends one datagram every GAP seconds, and prints the seconds that
                                            each took as a JSON list; a lost one is null
"""

from __future__ import annotations

import json
import select
import socket
import struct
import sys
import time

PATIENCE = 1.0  # seconds after the last one


def answer(address: str, port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((address, port))
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            data, peer = server.recvfrom(65536)
            server.sendto(data, peer)


def ask(address: str, port: int, count: int, gap: float) -> list[float | None]:
    took: list[float | None] = [None] * count
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect((address, port))
        begin = time.monotonic()
        sent = 0
        while None in took and time.monotonic() < begin + count * gap + PATIENCE:
            due = begin + sent * gap if sent < count else begin + count * gap + PATIENCE
            readable, _, _ = select.select([client], [], [], max(0.0, due - time.monotonic()))
            now = time.monotonic()
            if readable:
                number, at = struct.unpack("!Id", client.recv(64))
                took[number] = now - at
            elif sent < count:
                client.send(struct.pack("!Id", sent, time.monotonic()))
                sent += 1
    return took


if __name__ == "__main__":
    what, where, number, *rest = sys.argv[1:]
    if what == "answer":
        answer(where, int(number))
    else:
        json.dump(ask(where, int(number), int(rest[0]), float(rest[1])), sys.stdout)
