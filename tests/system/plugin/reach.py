"""Reaches and forges in many network namespaces, run as a program on a node.

Answers each line of standard input, a JSON object, with a line of JSON. `rows` is a file of SQLite and a
query; `converse` a list of conversations, see converse(); `forge` what a pod sends, and where it must not
arrive, see forge().
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import socket
import sqlite3
import sys
import time
from typing import Any

from tests.system.plugin.overhear import MARK, PACKET_IGNORE_OUTGOING, SOL_PACKET

ETH_P_ALL = 3
CLONE_NEWNET = 0x40000000
PATIENCE = 20  # seconds until what must arrive is lost
AGAIN = 0.2  # seconds until what may have been lost on its way is sent again

_libc = ctypes.CDLL(None, use_errno=True)


def enter(namespace: str) -> None:
    with open(namespace) as file:  # noqa: PTH123 - of one's own network, by a path
        if _libc.setns(file.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns", namespace)


def converse(source: str, destination: str, address: str, port: int, listens: int) -> bool:
    """Whether a byte comes there and back; who listens there may have another port than who asks knows."""
    enter(destination)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server(("", listens), family=family) as server:
        enter(source)
        with socket.socket(family) as asking:
            asking.settimeout(PATIENCE)
            server.settimeout(PATIENCE)
            try:
                asking.connect((address, port))
                answering = server.accept()[0]
                with answering:
                    answering.settimeout(PATIENCE)
                    asking.sendall(b"?")
                    answering.sendall(answering.recv(1) + b"!")
                    return asking.recv(2, socket.MSG_WAITALL) == b"?!"
            except OSError:
                return False


def forge(pod: str, interface: str, frames: list[str], last: dict[str, list[Any]]) -> dict[str, list[int]]:
    """Send frames from a pod; by place, the serial numbers of those that came there.

    `last` has for each place its namespace, its interface, an ordinary frame that must get there and its
    serial number: after it, nothing more is awaited.
    """
    ears = {name: packets(namespace, link) for name, (namespace, link, _, _) in last.items()}
    names = {ear: name for name, ear in ears.items()}
    mouth = packets(pod, interface)
    for frame in frames:
        mouth.send(bytes.fromhex(frame))
    heard: dict[str, list[int]] = {name: [] for name in last}
    until = time.monotonic() + PATIENCE
    while missing := [name for name in last if last[name][3] not in heard[name]]:
        if time.monotonic() > until:
            break
        for name in missing:
            mouth.send(bytes.fromhex(last[name][2]))
        for ear in select.select([ears[name] for name in missing], [], [], AGAIN)[0]:
            heard[names[ear]] += serials(ear)
    for each in (mouth, *ears.values()):
        each.close()
    return heard


def packets(namespace: str, interface: str) -> socket.socket:
    enter(namespace)
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    made.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    made.bind((interface, 0))
    made.setblocking(False)
    return made


def serials(ear: socket.socket) -> list[int]:
    """Of all that waits there."""
    found = []
    try:
        while True:
            marked = MARK.search(ear.recv(2048))
            found += [int(marked[1])] if marked else []
    except BlockingIOError:
        return found


def rows(file: str, query: str) -> list[Any]:
    """What a database answers; nothing where there is none."""
    if not os.path.exists(file):  # noqa: PTH110
        return []
    with contextlib.closing(sqlite3.connect(file)) as database:
        return list(database.execute(query))


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        if "rows" in asked:
            answer: Any = rows(*asked["rows"])
        elif "converse" in asked:
            answer = [converse(*each) for each in asked["converse"]]
        else:
            answer = forge(**asked["forge"])
        print(json.dumps(answer), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
