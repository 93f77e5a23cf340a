"""Listens at several interfaces at once, run as a program on a node: what of the marked frames comes by?

The arguments are places: a name, a network namespace's path and an interface, joined by commas. Says `ready`,
then for each line of standard input, a JSON object with `last` (place -> the serial number after which
nothing more is awaited there) and `seconds`, prints what came by since: a JSON list of place, serial number
or null, and the frame's beginning in hexadecimal. What a place itself sends is left out.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import select
import socket
import struct
import sys
import time

ETH_P_ALL = 3
SO_RCVBUFFORCE = 33  # asm-generic/socket.h
SOL_PACKET = 263
PACKET_IGNORE_OUTGOING = 23  # linux/if_packet.h
MARK = re.compile(rb"serial=(\d{6});")
BEGINNING = 160  # bytes
OVERHEAD = 50  # of VXLAN

Heard = tuple[str, "int | None", str]


def mark(serial: int) -> bytes:
    """What a frame carries to be known by."""
    return b"serial=%06d;" % serial


def serial_of(frame: bytes) -> int | None:
    """Whose frame it is. A fragment too short for a mark has an IP header with the same number."""
    found = MARK.search(frame)
    if found:
        return int(found[1])
    for start in (14, 14 + OVERHEAD):
        ip = frame[start : start + 20]
        if len(ip) == 20 and frame[start - 2 : start] == b"\x08\x00":
            identity, place = struct.unpack("!HH", ip[4:8])
            if place & 0x3FFF:  # more fragments, or an offset
                return int(identity)
    return None


def listen(namespace: str, interface: str) -> socket.socket:
    """A socket that gets all that arrives at an interface of another network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(namespace) as entered:  # noqa: PTH123
        if libc.setns(entered.fileno(), 0) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), namespace)
    found = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    with contextlib.suppress(PermissionError):  # an ordinary user's limit is enough for a batch of frames
        found.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 24)
    found.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    found.bind((interface, ETH_P_ALL))
    found.setblocking(False)
    return found


def until(places: dict[socket.socket, str], last: dict[str, int], seconds: float) -> list[Heard]:
    """What comes by until each place has seen its last frame, or time is up."""
    names = {place.fileno(): (name, place) for place, name in places.items()}
    poll = select.poll()
    for number in names:
        poll.register(number, select.POLLIN)
    deadline, awaited = time.monotonic() + seconds, dict(last)
    heard: list[Heard] = []
    while awaited and (left := deadline - time.monotonic()) > 0:
        for number, _ in poll.poll(left * 1000):
            name, place = names[number]
            for frame in drain(place):
                serial = serial_of(frame)
                heard.append((name, serial, frame[:BEGINNING].hex()))
                if serial is not None and awaited.get(name) == serial:
                    del awaited[name]
    return heard


def drain(place: socket.socket) -> list[bytes]:
    """All that waits in a socket."""
    frames = []
    while True:
        try:
            frames.append(place.recv(1 << 16))
        except BlockingIOError:
            return frames


def main() -> None:
    """Listen, and answer line by line."""
    places = {}
    for argument in sys.argv[1:]:
        name, namespace, interface = argument.split(",")
        places[listen(namespace, interface)] = name
    print("ready", flush=True)  # noqa: T201
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(until(places, asked["last"], asked["seconds"])), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
