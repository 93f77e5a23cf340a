"""Which of a Connection's proxy pods answer: one that does not, while another does, gets no more requests.

Kubernetes looks at a node for 40 s before it believes that it is dead (kube-controller-manager,
``--node-monitor-grace-period``), and by half a minute at what its kubelet cannot say any more. So where a
Connection has several pods each is asked from here by TCP, through to the device where pods translate. Who
accepts or refuses answers. Who is silent loses the label by which the Service chooses pods, and has it again
with its first answer. Where none answers it is the device, or this program's own node: nothing is changed.

Now and then a pod that translates is asked at each port for TCP besides: which of them the device does not
accept, while it does others, is said of it.
"""

from __future__ import annotations

import errno
import selectors
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from edge.devices.kinds import Connection
from edge.devices.picture import PODS, Key, Picture, ready, serves
from edge.devices.rendering import SERVING, Port, asked_at, asks, taken_ports
from edge.http import MERGE, AwayError, Json, Question, Server
from edge.log import Logger

ASK_SECONDS = 0.5  # how often, and how long an answer may take
HANDLERS_SECONDS = 10.0  # how often at all ports
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
    """Asks pods as long as it ``may`` act, and sees to it that those in a Service answer.

    ``concern`` is told of Devices of which something else is known then; ``handlers``: whether to ask theirs.
    """

    def __init__(
        self,
        server: Server,
        picture: Picture,
        may: Callable[[], bool],
        log: Logger,
        concern: Callable[[Key], None] = lambda _: None,
        handlers: bool = True,
    ) -> None:
        self._server, self._picture, self._may, self._log = server, picture, may, log
        self._concern, self._handlers = concern, handlers
        self._silences: Counter[str] = Counter()
        self._asked = float("-inf")  # when all ports were (monotonic seconds)

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
        ends = [one.end for group in several for one in group]
        due = self._handlers and time.monotonic() >= self._asked + HANDLERS_SECONDS
        devices = self._devices() if due else {}
        answered = answering([*ends, *(end for parts in devices.values() for end in parts)], ASK_SECONDS)
        if due:
            self._asked = time.monotonic()
            self._tell(devices, answered)
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

    def _devices(self) -> dict[str, dict[End, int]]:
        """Return where each device's ports for TCP are asked, by a pod of each connection that translates."""
        found: dict[str, dict[End, int]] = {}
        for key, connection in self._picture.all_connections():
            device = self._picture.device(connection.device)
            pods = sorted(self._with_addresses(key), key=lambda pod: ready(pod) and serves(pod), reverse=True)
            if device is None or not pods or not asks(connection, device):
                continue
            address = pods[0]["status"]["podIP"]
            for port in self._ports(connection):
                if port.up and port.handler.transport == "TCP":
                    found.setdefault(device.name, {})[(address, port.taken)] = port.handler.port
        return found

    def _tell(self, devices: Mapping[str, Mapping[End, int]], answered: Mapping[End, bool]) -> None:
        """Say which ports devices do not accept; of one that accepts none, kubelets know as much."""
        closed = {}
        for name, ends in devices.items():
            accepted = {port for end, port in ends.items() if answered.get(end)}
            if accepted and (left := frozenset(ends.values()) - accepted):
                closed[name] = left
        for key in self._picture.learn_closed(closed):
            self._concern(key)

    def _with_addresses(self, connection: Key) -> list[Json]:
        return [pod for pod in self._picture.pods(connection) if pod["status"].get("podIP")]

    def _several(self) -> Iterator[list[Asked]]:
        """Yield the pods of each Connection that has several."""
        for key, connection in self._picture.all_connections():
            if connection.replicas > 1:
                port = asked_at(self._ports(connection))  # without TCP they refuse there
                yield [Asked(pod, (pod["status"]["podIP"], port)) for pod in self._with_addresses(key)]

    def _ports(self, connection: Connection) -> list[Port]:
        device = self._picture.device(connection.device)
        parts = device.components if device else ()
        return list(taken_ports(connection, [one for one in parts if one.name in connection.components]))

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


def answering(ends: Iterable[End], seconds: float) -> dict[End, bool]:
    """Return which of these answer a TCP connection within so many seconds, all asked at once.

    With each is said whether it accepts, and does not refuse.
    """
    found: dict[End, bool] = {}
    deadline = time.monotonic() + seconds
    begun: dict[int, socket.socket] = {}

    def hear(end: End, said: int) -> None:
        if said in ANSWERS:
            found[end] = said == 0

    with selectors.DefaultSelector() as chosen:
        for end in set(ends):
            one = socket.socket()
            one.setblocking(False)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            begun[one.fileno()] = one
            said = one.connect_ex(end)
            if said == errno.EINPROGRESS:
                chosen.register(one, selectors.EVENT_WRITE, end)
            else:
                hear(end, said)
        left = seconds
        while chosen.get_map() and left > 0:
            left = deadline - time.monotonic()
            # Who has had to wait for a processor looks once more: answers may be there.
            for key, _ in chosen.select(max(0.0, left)):
                chosen.unregister(key.fd)
                hear(key.data, begun[key.fd].getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
    for one in begun.values():
        one.close()
    return found
