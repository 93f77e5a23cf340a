"""Who answers whom, wherever it is run as a program, with a JSON object.

`serve` has protocols and ports; `ask` is a list of `[protocol, address, port]`, of which those in `expected`
are waited for, and it prints those that answered.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time
from typing import Any

PATIENCE, GRACE = 60.0, 0.2  # seconds; for what is expected, and after that for what is not
KINDS = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}


def main() -> None:
    """Serve or ask."""
    spec = json.loads(sys.argv[1])
    if "serve" in spec:
        serve([(kind, port) for kind, port in spec["serve"]])
    else:
        probes = [tuple(probe) for probe in spec["ask"]]
        found = ask(probes, [tuple(probe) for probe in spec["expected"]])
        sys.stdout.write(json.dumps(found))


def serve(ports: list[tuple[str, int]]) -> None:
    """Answer each datagram, and each connection's first bytes, with the same."""
    waiting = []
    for kind, port in ports:
        server = socket.socket(socket.AF_INET, KINDS[kind])
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("", port))
        if kind == "tcp":
            server.listen(16)
        waiting.append(server)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        for ready in select.select(waiting, [], [])[0]:
            if ready.type == socket.SOCK_DGRAM:
                content, source = ready.recvfrom(100)
                ready.sendto(content, source)
            else:
                connection, _ = ready.accept()
                connection.sendall(connection.recv(100))
                connection.close()


def ask(probes: list[Any], expected: list[Any]) -> list[Any]:
    """Those that answered, when all that are expected have, and a moment later."""
    found: list[Any] = []
    asking = {}
    for probe in probes:
        kind, address, port = probe
        client = socket.socket(socket.AF_INET, KINDS[kind])
        client.setblocking(False)
        client.connect_ex((address, port))
        asking[client] = probe
    begin, end = time.monotonic(), None
    while end is None or time.monotonic() < end:
        for client in select.select([], list(asking), [], 0)[1]:
            try:
                client.send(b"are you there?")
            except OSError:
                continue
        for client in select.select(list(asking), [], [], 0.02)[0]:
            probe = asking.pop(client)
            try:
                if client.recv(100):
                    found.append(probe)
            except OSError:
                pass  # refused, or no way
            client.close()
        if end is None and (set(expected) <= set(found) or time.monotonic() - begin > PATIENCE):
            end = time.monotonic() + GRACE
    return sorted(found)


if __name__ == "__main__":
    main()
