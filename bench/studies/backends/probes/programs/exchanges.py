"""How long one small exchange takes: a connection of TCP, one byte there, one byte back.

One process answers in all pods' network namespaces, another asks from one of them, one pod after the other.

Run as a program by its path, with its wishes as JSON in its argument: ``source``, the network to ask from;
``ends``, a list of {"network": path, "address"} to ask, in this order; ``seconds``, the most that one may
take. It says "ready" when all of them listen, begins when a line comes on its standard input, and then says
as JSON what each took in nanoseconds, or null.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[5]))

from bench.studies.backends.probes.programs.networks import inside

PORT = 7008


def answer(listeners: list[socket.socket], end: int) -> None:
    """Answer whoever asks, until the other end of a pipe is gone."""
    poll = select.epoll()
    known = {each.fileno(): each for each in listeners}
    poll.register(end, select.EPOLLHUP)
    for descriptor in known:
        poll.register(descriptor, select.EPOLLIN)
    listening = set(known)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == end:
                return
            if descriptor in listening:
                made, _ = known[descriptor].accept()
                known[made.fileno()] = made
                poll.register(made, select.EPOLLIN)
                continue
            asked = known[descriptor].recv(1)
            if asked:
                known[descriptor].send(asked)
            else:
                known.pop(descriptor).close()


def ask(network: str, address: str, seconds: float) -> int | None:
    """Return the nanoseconds that an exchange took; None if it did not end well in time."""
    with inside(network):
        client = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    with client:
        client.settimeout(seconds)
        begin = time.monotonic_ns()
        try:
            client.connect((address, PORT))
            client.send(b"?")
            if client.recv(1) != b"?":
                return None
        except OSError:
            return None
        return time.monotonic_ns() - begin


def main() -> None:
    """Do as told."""
    wishes = json.loads(sys.argv[1])
    listeners = []
    for one in {one["address"]: one for one in wishes["ends"]}.values():
        with inside(one["network"]):
            made = socket.create_server((one["address"], PORT))
        listeners.append(made)
    ending, end = os.pipe()
    if os.fork() == 0:
        os.close(end)
        answer(listeners, ending)
        os._exit(0)
    print("ready", flush=True)
    sys.stdin.readline()
    took = [ask(wishes["source"], one["address"], wishes["seconds"]) for one in wishes["ends"]]
    print(json.dumps(took), flush=True)


if __name__ == "__main__":
    main()
