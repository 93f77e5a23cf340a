"""Which of a Connection's proxy pods answer: one that does not, while another does, gets no more requests.

Kubernetes looks at a node for 40 s before it believes that it is dead (kube-controller-manager,
``--node-monitor-grace-period``), and by half a minute at what its kubelet cannot say any more. So where a
Connection has several pods each is asked from here by TCP, through to the device where pods translate. Who
accepts or refuses answers. Who is silent loses the label by which the Service chooses pods, and has it again
with its first answer. Where none answers it is the device, or this program's own node: nothing is changed.
"""

from __future__ import annotations

import errno
import selectors
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from edge.devices.kinds import Connection
from edge.devices.picture import PODS, Picture, ready, serves
from edge.devices.rendering import SERVING, asked_at, taken_ports
from edge.http import MERGE, AwayError, Json, Question, Server
from edge.log import Logger

ASK_SECONDS = 0.5  # how often, and how long an answer may take
SILENCES = 2  # in a row: one may be a packet that was lost
ANSWERS = (0, errno.ECONNREFUSED)
RESET = struct.pack("ii", 1, 0)  # of SO_LINGER: nothing stays of a connection that has told all

End = tuple[str, int]


class Asked(NamedTuple):
    """A proxy pod, and where it is asked."""

    pod: Json
    end: End

    @property
    def uid(self) -> str:
        """By which it is told from another of its name."""
        return str(self.pod["metadata"]["uid"])


class Liveness:
    """Asks pods as long as it ``may`` act, and sees to it that those in a Service answer."""

    def __init__(self, server: Server, picture: Picture, may: Callable[[], bool], log: Logger) -> None:
        self._server, self._picture, self._may, self._log = server, picture, may, log
        self._silences: Counter[str] = Counter()

    def run(self, over: threading.Event) -> None:
        """Ask until it is over."""
        due = time.monotonic()
        while not over.wait(max(0.0, due - time.monotonic())):
            due = time.monotonic() + ASK_SECONDS
            try:
                self.turn()
            except Exception as error:  # of any kind: without it a dead gateway stays in use
                self._log.once(f"proxy pods: {error if isinstance(error, AwayError) else repr(error)}")

    def turn(self) -> None:
        """Ask all once. Raises AwayError, OSError."""
        several = list(self._several())
        answered = answering((one.end for group in several for one in group), ASK_SECONDS)
        known = {one.uid for group in several for one in group}
        self._silences = Counter({uid: count for uid, count in self._silences.items() if uid in known})
        for group in several:
            for one in group:
                self._silences[one.uid] = 0 if one.end in answered else self._silences[one.uid] + 1
            there = any(not self._silences[one.uid] and ready(one.pod) for one in group)
            for one in group:
                if not self._silences[one.uid]:
                    self._let(one.pod, True)
                elif there and self._silences[one.uid] >= SILENCES:
                    self._let(one.pod, False)

    def _several(self) -> Iterator[list[Asked]]:
        """Yield the pods of each Connection that has several."""
        for key, connection in self._picture.all_connections():
            if connection.replicas > 1:
                port = self._port(connection)
                pods = [pod for pod in self._picture.pods(key) if pod["status"].get("podIP")]
                yield [Asked(pod, (pod["status"]["podIP"], port)) for pod in pods]

    def _port(self, connection: Connection) -> int:
        """Return where a connection's pods are asked: without TCP, where they refuse."""
        device = self._picture.device(connection.device)
        parts = device.components if device else ()
        return asked_at(
            list(taken_ports(connection, [one for one in parts if one.name in connection.components]))
        )

    def _let(self, pod: Json, serve: bool) -> None:
        if serves(pod) == serve or not self._may():
            return
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        labels = {SERVING: "true" if serve else "false"}
        news = {"metadata": {"uid": metadata["uid"], "labels": labels}}
        self._picture.put(PODS, self._server.ask(Question("PATCH", path, news, MERGE)), False)
        words = "answers again" if serve else "does not answer: it gets no requests"
        self._log(f"{metadata['namespace']}/{metadata['name']} {words}")


def answering(ends: Iterable[End], seconds: float) -> set[End]:
    """Return which of these accept or refuse a TCP connection within so many seconds, all asked at once."""
    found: set[End] = set()
    deadline = time.monotonic() + seconds
    begun: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as chosen:
        for end in set(ends):
            one = socket.socket()
            one.setblocking(False)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            begun[one.fileno()] = one
            said = one.connect_ex(end)
            if said == errno.EINPROGRESS:
                chosen.register(one, selectors.EVENT_WRITE, end)
            elif said in ANSWERS:
                found.add(end)
        while chosen.get_map() and (left := deadline - time.monotonic()) > 0:
            for key, _ in chosen.select(left):
                chosen.unregister(key.fd)
                if begun[key.fd].getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) in ANSWERS:
                    found.add(key.data)
    for one in begun.values():
        one.close()
    return found
