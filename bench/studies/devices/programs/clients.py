"""Many clients by UDP: each sends a datagram from a port of its own, and waits for what comes back.

Run as a program by its path, with its wishes as JSON in its argument: ``{"address", "port", "clients",
"seconds"}``. It says "ready", begins when a line comes on its standard input, and says as JSON how many were
answered. Who was not is asked for again, for an answer or a datagram may be lost.
"""

from __future__ import annotations

import json
import resource
import select
import socket
import sys
import time

AGAIN_SECONDS = 1.0
AT_ONCE = 5  # datagrams, before it is looked for answers: a process begun for each takes its time


def ask(wishes: dict[str, float], peer: tuple[str, int]) -> int:
    """Return how many clients were answered."""
    waiting = {}
    poll = select.epoll()
    for number in range(int(wishes["clients"])):
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.connect(peer)
        waiting[one.fileno()] = (one, b"%d" % number)
        poll.register(one, select.EPOLLIN)
    kept, answered, deadline = list(waiting.values()), 0, time.monotonic() + wishes["seconds"]
    while waiting and time.monotonic() < deadline:
        again = list(waiting.values())
        for first in range(0, len(again), AT_ONCE):
            for one, word in again[first : first + AT_ONCE]:
                if one.fileno() in waiting:
                    one.send(word)
            answered += _answers(poll, waiting, 0.01)
        answered += _answers(poll, waiting, AGAIN_SECONDS)
    for one, _ in kept:
        one.close()
    return answered


def _answers(poll: select.epoll, waiting: dict[int, tuple[socket.socket, bytes]], seconds: float) -> int:
    found, deadline = 0, time.monotonic() + seconds
    while waiting and (left := deadline - time.monotonic()) > 0:
        for number, _ in poll.poll(left):
            if number not in waiting:
                continue
            one, word = waiting[number]
            try:
                right = one.recv(64) == word
            except OSError:  # what ICMP said: it is asked again
                continue
            if right:
                del waiting[number]
                poll.unregister(number)
                found += 1
    return found


def main() -> None:
    """Do as told."""
    wishes = json.loads(sys.argv[1])
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps(ask(wishes, (wishes["address"], wishes["port"]))), flush=True)


if __name__ == "__main__":
    main()
