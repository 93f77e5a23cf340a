"""Datagrams that are counted: ``send ADDRESS`` until its input ends, ``receive`` until that is told."""

from __future__ import annotations

import select
import socket
import sys
from contextlib import suppress

PORT = 5300
SO_RCVBUFFORCE = 33  # asm-generic/socket.h
END = b"end "


def main() -> None:
    """Send or receive, and say how many there were."""
    with socket.socket(type=socket.SOCK_DGRAM) as link:
        say(receive(link) if sys.argv[1] == "receive" else send(link, (sys.argv[2], PORT)))


def receive(link: socket.socket) -> int:
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    with suppress(PermissionError):  # who receives may be late, and an ordinary user has room for a second
        link.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 24)
    link.bind(("", PORT))
    say("ready")
    link.settimeout(60)  # what never comes is a failure, and no reason to wait
    received = 0
    while not link.recv(100).startswith(END):
        received += 1
    return received


def send(link: socket.socket, to: tuple[str, int]) -> int:
    sent = 0
    while not select.select([sys.stdin], [], [], 0.002)[0]:
        link.sendto(b"%d" % sent, to)
        sent += 1
        if sent == 10:  # the neighbours are known by now
            say("under way")
    for _ in range(3):
        link.sendto(END, to)
    return sent


def say(words: object) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
