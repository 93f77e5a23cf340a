"""UDP packets at an offered rate, and what all processors did meanwhile.

Run as a program by its path, with its wishes as JSON in its argument. Both sides say "ready" and begin when a
line comes on their standard input; what they have found they say as JSON.

``{"role": "send", "address", "port", "rate", "size", "seconds"}`` offers packets of ``size`` bytes of
payload, a millisecond's worth at a time. ``{"role": "receive", "address", "port", "idle", "lead",
"window", "windows"}`` reads ``/proc/stat`` at both ends of ``idle`` seconds in which nothing flows, says
"idle", waits for the first packet and ``lead`` seconds more, reads it now and after each window of so many
seconds, and at both ends of ``idle`` seconds more when nothing has come for a while.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import time
from pathlib import Path

TICK = 0.001  # seconds
PATIENCE_SECONDS = 10.0  # for the first packet
QUIET_SECONDS = 0.1  # without a packet: the sender has ended
BUFFER_BYTES = 4 * 2**20

Reading = dict[str, object]


def send(wishes: dict[str, float], address: str) -> None:
    """Offer packets, and say how many were sent."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.connect((address, int(wishes["port"])))
    packet, rate = bytes(int(wishes["size"])), wishes["rate"]
    _ready()
    begin, sent, failed = time.monotonic(), 0, 0
    while (passed := time.monotonic() - begin) < wishes["seconds"]:
        # No more than ten ticks' worth at once: who is late by more has offered less.
        for _ in range(min(int(passed * rate) - sent - failed, int(10 * TICK * rate) + 1)):
            try:
                sender.send(packet)
                sent += 1
            except OSError:  # what ICMP said of an earlier one
                failed += 1
        time.sleep(TICK)
    print(json.dumps({"sent": sent, "failed": failed, "seconds": passed}), flush=True)


def receive(wishes: dict[str, float], address: str) -> None:
    """Count packets, and read what the processors did."""
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    receiver.bind((address, int(wishes["port"])))
    receiver.setblocking(False)
    _ready()
    before = _idle(wishes["idle"])
    print("idle", flush=True)
    if not select.select([receiver], [], [], PATIENCE_SECONDS)[0]:
        sys.exit("no packet came")
    _count_until(receiver, time.monotonic() + wishes["lead"])
    busy, packets = [_reading()], []
    for _ in range(int(wishes["windows"])):
        packets.append(_count_until(receiver, time.monotonic() + wishes["window"]))
        busy.append(_reading())
    while select.select([receiver], [], [], QUIET_SECONDS)[0]:
        _count_until(receiver, time.monotonic() + TICK)
    after = _idle(wishes["idle"])
    found = {"idle": [before, after], "busy": busy, "packets": packets}
    print(json.dumps(found), flush=True)


def _count_until(receiver: socket.socket, end: float) -> int:
    """Count what comes, a millisecond's worth at a time: nobody is woken for a packet more or less."""
    counted, buffer = 0, bytearray(65536)
    while time.monotonic() < end:
        try:
            while True:
                receiver.recv_into(buffer)
                counted += 1
        except OSError:  # nothing is left
            time.sleep(TICK)
    return counted


def _idle(seconds: float) -> list[Reading]:
    first = _reading()
    time.sleep(seconds)
    return [first, _reading()]


def _reading() -> Reading:
    """Return a moment of the monotonic clock in nanoseconds, and what /proc/stat says of the processors."""
    with Path("/proc/stat").open(encoding="ascii") as file:
        stat = [line for line in file if line.startswith("cpu")]
    return {"ns": time.monotonic_ns(), "stat": "".join(stat)}


def _ready() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


def main() -> None:
    """Do as told, always on the same processor: the sides have one each, if there are two."""
    wishes = json.loads(sys.argv[1])
    processors = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {processors[0 if wishes["role"] == "send" else -1]})
    role = {"send": send, "receive": receive}[wishes.pop("role")]
    role(wishes, wishes.pop("address"))


if __name__ == "__main__":
    main()
