"""Asks one port of another node again and again, or answers there, as who repairs a node would.

Run as a program with its wishes as JSON in its argument. ``{"port": P}`` says "ready" and answers at that TCP
port, a byte for each connection, until it is ended. With ``"address"``, ``"every"`` and ``"patience"``, both
in seconds, and ``"times"``, it says "ready", begins when a line comes on its standard input, makes so many
connections, and says as JSON how many seconds each took to its answer, null without one. Standard library
alone, Python 3.9 or newer.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def answer(port: int) -> None:
    """Answer whoever asks."""
    with socket.create_server(("", port)) as listening:
        print("ready", flush=True)
        while True:
            asking, _ = listening.accept()
            with asking:
                asking.sendall(b"!")


def asked(address: str, port: int, patience: float) -> float | None:
    """Return how many seconds an answer took; None if there was none in time."""
    begun = time.monotonic()
    try:
        with socket.create_connection((address, port), timeout=patience) as there:
            if not there.recv(1):
                return None
    except OSError:
        return None
    return time.monotonic() - begun


def ask(wishes: dict[str, Any]) -> list[float | None]:
    """Ask when it is due, whatever has become of those before."""
    took: list[float | None] = [None] * wishes["times"]

    def one(number: int) -> None:
        took[number] = asked(wishes["address"], wishes["port"], wishes["patience"])

    threads, begun = [], time.monotonic()
    for number in range(wishes["times"]):
        time.sleep(max(0.0, begun + number * wishes["every"] - time.monotonic()))
        threads.append(threading.Thread(target=one, args=(number,)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    return took


def main() -> None:
    """Do as wished."""
    wishes = json.loads(sys.argv[1])
    if "address" not in wishes:
        answer(wishes["port"])
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps(ask(wishes)), flush=True)


if __name__ == "__main__":
    main()
