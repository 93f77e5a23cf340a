"""Streams of small UDP packets between pods of many nodes, and when they arrive and when they do not.

One process sends, one receives; both have sockets in all pods' network namespaces, and one monotonic clock.
Every ``interval`` one packet leaves for each pair. What is kept of a pair is its runs: stretches of packets
of which none is missing, each with the time of arrival of its first and last. An error of sending is what the
path says by itself: a route is gone, or ICMP came back.

Run as a program by its path, with its wishes as JSON in its argument: ``interval`` in nanoseconds; ``ends``,
a list of {"network": path, "address"}; ``pairs``, a list of [from, to] as places in that list. It says
"ready", and begins when a line comes on its standard input. At every further line it says "arrive" as soon as
the packets of all pairs have been arriving for a while from then on. It ends with its standard input, and
then says what there was as JSON.
"""

from __future__ import annotations

import json
import math
import os
import select
import socket
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[5]))

from bench.studies.backends.probes.programs.networks import udp

PORT = 7007
ORDER = struct.Struct("!I")
PACKET = struct.Struct("!HI")  # the pair, and the round in which it was sent
MOST_ERRORS = 20  # that are kept of a pair
LATE_NS, MOST_LATE = 10_000_000, 5000  # which late rounds are kept, and how many
LAST_SECONDS = 0.2  # for packets that are on their way
LOOK_SECONDS = 0.02  # how often it is looked whether all arrive, when that is asked
STEADY = 100  # rounds without a packet missing
PRIORITY = 1  # the lowest of the real-time ones is before all ordinary processes


class Arrivals:
    """The runs of each pair."""

    def __init__(self, pairs: int) -> None:
        # first number, its time, last number, its time
        self.runs: list[list[list[int]]] = [[] for _ in range(pairs)]

    def take(self, pair: int, number: int, now: int) -> None:
        """Take note of a packet. One that was overtaken is left out."""
        runs = self.runs[pair]
        if not runs or number > runs[-1][2] + 1:
            runs.append([number, now, number, now])
        elif number == runs[-1][2] + 1:
            runs[-1][2:] = number, now

    def steady(self, since: int) -> bool:
        """Tell whether the packets of every pair arrive, and have for a while after a round."""
        return all(runs and runs[-1][2] - max(runs[-1][0], since) >= STEADY for runs in self.runs)


def receive(sockets: list[socket.socket], pairs: int, orders: int, out: int) -> None:
    """Receive until there are no more orders, and write all runs. An order is a round to be steady since."""
    poll = select.epoll()
    for each in sockets:
        poll.register(each, select.EPOLLIN)
    poll.register(orders, select.EPOLLIN | select.EPOLLHUP)
    by_descriptor = {each.fileno(): each for each in sockets}
    arrivals, buffer = Arrivals(pairs), bytearray(64)
    deadline, since, look = math.inf, None, 0.0
    while time.monotonic() < deadline:
        for descriptor, _ in poll.poll(LAST_SECONDS if since is None else LOOK_SECONDS):
            if descriptor == orders:
                if order := os.read(orders, ORDER.size):
                    (since,) = ORDER.unpack(order)
                else:
                    poll.unregister(orders)
                    deadline = time.monotonic() + LAST_SECONDS
                continue
            try:
                while by_descriptor[descriptor].recv_into(buffer) == PACKET.size:
                    pair, number = PACKET.unpack_from(buffer)
                    arrivals.take(pair, number, time.monotonic_ns())
            except OSError:  # nothing is left, or ICMP for what was sent from here
                continue
        if since is not None and time.monotonic() > look:
            look = time.monotonic() + LOOK_SECONDS
            if arrivals.steady(since):
                since = None
                print("arrive", flush=True)
    with os.fdopen(out, "w", encoding="ascii") as stream:
        json.dump(arrivals.runs, stream)


def send(senders: list[tuple[int, socket.socket]], interval: int, orders: int) -> dict[str, object]:
    """Send from every socket, each interval, until standard input ends; return what there was.

    A line there is passed on as an order.
    """
    late: list[tuple[int, int]] = []
    errors: list[list[list[int]]] = [[] for _ in senders]
    begun = due = time.monotonic_ns()
    rounds = 0
    while True:
        for pair, sender in senders:
            try:
                sender.send(PACKET.pack(pair, rounds))
            except OSError as error:
                if len(errors[pair]) < MOST_ERRORS:
                    errors[pair].append([time.monotonic_ns(), error.errno or 0])
        rounds += 1
        due += interval
        now = time.monotonic_ns()
        if now - due > LATE_NS and len(late) < MOST_LATE:
            late.append((now, now - due))
        if now > due + interval:  # what was missed is not made up for in a burst
            due = now
        if select.select([0], [], [], max(due - now, 0) / 1e9)[0]:
            if not os.read(0, 1):
                break
            os.write(orders, ORDER.pack(rounds))
    ended = time.monotonic_ns()
    return {"begun_ns": begun, "ended_ns": ended, "rounds": rounds, "late": late, "errors": errors}


def main() -> None:
    """Do as told, before what brings nodes up, where that is allowed: it is what the streams look at."""
    wishes = json.loads(sys.argv[1])
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))
    ends, pairs = wishes["ends"], wishes["pairs"]
    receivers = [udp(end["network"], end["address"], PORT) for end in ends]
    senders = []
    for pair, (source, destination) in enumerate(pairs):
        made = udp(ends[source]["network"], ends[source]["address"], 0)
        made.connect((ends[destination]["address"], PORT))
        senders.append((pair, made))
    taken, orders = os.pipe()
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(orders)
        os.close(out)
        receive(receivers, len(pairs), taken, into)
        os._exit(0)
    os.close(taken)
    os.close(into)
    print("ready", flush=True)
    os.read(0, 1)
    sent = send(senders, wishes["interval"], orders)
    os.close(orders)
    with os.fdopen(out, encoding="ascii") as stream:
        runs = json.load(stream)
    os.waitpid(child, 0)
    print(json.dumps({**sent, "runs": runs}), flush=True)


if __name__ == "__main__":
    main()
