"""Traffic by the clock, and the kernel's counters: what `benchmarks/fabric.py` runs within pods and nodes.

Only the standard library. Times are CLOCK_MONOTONIC's, in seconds, which all namespaces of a machine share.

    sink PORT                                           take what comes, by TCP and UDP
    tcp ADDRESS PORT STREAMS RATE FROM UNTIL [ON OFF]   send on connections that are made at once
    udp ADDRESS PORT RATE FROM UNTIL [ON OFF]           send datagrams of 1,400 bytes
    count UNTIL EVERY                                   a line of JSON each time, of /proc/net/dev

RATE is in bits per second of payload, and 0 is all that TCP takes.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

CHUNK, DATAGRAM = 16384, 1400
TICK = 0.002
NOT_SENT = 25  # TCP_NOTSENT_LOWAT: who stops has nothing waiting in its socket (linux/tcp.h)
LONGEST_AFTER = 0.02  # of a rate, what a sender that was late makes up for (seconds)


def sink(port: int) -> None:
    """Take what comes until killed. Datagrams are left to the socket, which drops them."""
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind(("", port))
    listener = socket.create_server(("", port), backlog=256)
    print("ready", flush=True)
    poller, connections = select.epoll(), {}
    poller.register(listener, select.EPOLLIN)
    while True:
        for descriptor, _ in poller.poll():
            if descriptor == listener.fileno():
                connection, _ = listener.accept()
                connections[connection.fileno()] = connection
                poller.register(connection, select.EPOLLIN)
            elif not connections[descriptor].recv(1 << 20, socket.MSG_TRUNC):
                connections.pop(descriptor).close()


class Times:
    """When to send: from a time until another, on and off."""

    def __init__(self, begin: str, until: str, on: str = "0", off: str = "0") -> None:
        self.begin, self.until = float(begin), float(until)
        self.on, self.every = float(on), float(on) + float(off)

    def rest(self, now: float) -> float:
        """How long not to send (seconds); 0 for now, and below 0 when all is over."""
        if now >= self.until:
            return -1.0
        if now < self.begin:
            return self.begin - now
        at = (now - self.begin) % self.every if self.every else 0.0
        return self.every - at if self.every and at >= self.on else 0.0


def paced(times: Times, rate: float, send: Callable[[], int]) -> None:
    """Send while it is time, so many bits per second; `send` returns how many bytes it was."""
    at, owed = time.monotonic(), 0.0
    while (rest := times.rest(time.monotonic())) >= 0:
        if rest:
            time.sleep(rest)
            at, owed = time.monotonic(), 0.0
            continue
        now = time.monotonic()
        owed = min(owed + (now - at) * rate / 8, max(LONGEST_AFTER * rate / 8, DATAGRAM))
        at = now
        while owed > 0 and (sent := send()):
            owed -= sent
        time.sleep(TICK)


def tcp(address: str, port: str, streams: str, rate: str, *times: str) -> None:
    """Send on connections; see above."""
    found = [socket.create_connection((address, int(port)), 10) for _ in range(int(streams))]
    poller, data = select.poll(), bytes(CHUNK)
    for one in found:
        one.setsockopt(socket.IPPROTO_TCP, NOT_SENT, CHUNK)
        one.setblocking(False)
        poller.register(one, select.POLLOUT)
    by_descriptor = {one.fileno(): one for one in found}
    if float(rate):

        def send() -> int:
            try:
                return found[0].send(data)
            except BlockingIOError:
                return 0

        paced(Times(*times), float(rate), send)
        return
    when = Times(*times)
    while (rest := when.rest(time.monotonic())) >= 0:
        if rest:
            time.sleep(rest)
        for descriptor, _ in poller.poll(20):
            by_descriptor[descriptor].send(data)


def udp(address: str, port: str, rate: str, *times: str) -> None:
    """Send datagrams; see above."""
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.connect((address, int(port)))
    data = bytes(DATAGRAM)

    def send() -> int:
        try:
            return out.send(data)
        except OSError:  # the queue is full: it is lost as any other
            return DATAGRAM

    paced(Times(*times), float(rate), send)


def count(until: str, every: str) -> None:
    """Say what each interface has received and sent: bytes, packets, bytes, packets."""
    with Path("/proc/net/dev").open(encoding="ascii") as file:
        while (now := time.monotonic()) < float(until):
            file.seek(0)
            found = {}
            for line in file.read().splitlines()[2:]:
                name, _, numbers = line.partition(":")
                of_it = numbers.split()
                found[name.strip()] = [int(of_it[at]) for at in (0, 1, 8, 9)]
            print(json.dumps({"at": now, **found}), flush=True)
            time.sleep(float(every))


if __name__ == "__main__":
    does, *arguments = sys.argv[1:]
    if does == "sink":
        sink(int(arguments[0]))
    elif does == "count":
        count(*arguments)
    else:
        (tcp if does == "tcp" else udp)(*arguments)
