"""What a proxy says of itself to the API: by event about its node, and as a condition of its own pod.

The condition is a readiness gate of the pod, so that Kubernetes knows by the proxy's own word, and at once,
whether services are served on a node; nobody has to ask.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from edge.events import WARNING, Events
from edge.http import STRATEGIC, AwayError, Json, Question, RefusedError, Server
from edge.log import Logger
from edge.services.hints import Event

COMPONENT = "concorde-services"
SERVED, LEFT_ALONE, FAILED = "ServicesServed", "ServicesLeftAlone", "ServicesNotServed"  # events
GATE = "concorde.contmec.dev/serving"
AGAIN_SECONDS = 1.0  # after which what could not be said is tried again

Say = Callable[[Event], None]


def by_all(server: Server, node: str, pod: str, log: Logger) -> Say:
    """Return what tells an API what is so on a node, at the Node of that name and at a pod, by its path.

    Either is told without waiting for the other.
    """
    says = ([at_node(server, node)] if node else []) + ([at_pod(server, pod)] if pod else [])
    tellers = [Teller(say, log) for say in says]

    def tell(event: Event) -> None:
        for one in tellers:
            one.tell(event)

    return tell


class Teller:
    """Says what is so; of what could not be said, the newest. ``say`` raises AwayError."""

    def __init__(self, say: Say, log: Logger) -> None:
        self._say, self._log = say, log
        self._inbox: queue.SimpleQueue[Event] = queue.SimpleQueue()
        threading.Thread(target=self._write, daemon=True).start()

    def tell(self, event: Event) -> None:
        """Say it as soon as the API takes it."""
        self._inbox.put(event)

    def _write(self) -> None:
        while True:
            event = self._inbox.get()
            while not self._said(event):
                with suppress(queue.Empty):
                    event = self._inbox.get(timeout=AGAIN_SECONDS)

    def _said(self, event: Event) -> bool:
        try:
            self._say(event)
        except Exception as error:  # of any kind: the next event is to be written all the same
            self._log.once(str(error) if isinstance(error, AwayError) else repr(error))
            return isinstance(error, RefusedError) and not error.may_pass
        return True


def at_node(server: Server, node: str) -> Say:
    """Return what says by event what is so on a node; that all is as usual only after it was not."""
    # As Kubernetes' own programs do: describe looks for a node's events by its name.
    about = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": node}
    events = Events(server, COMPONENT)
    usual = True

    def say(event: Event) -> None:
        nonlocal usual
        if event.type == WARNING or not usual:
            events.say(about, event.reason, event.message, event.type)
        usual = event.type != WARNING

    return say


def at_pod(server: Server, path: str) -> Say:
    """Return what lets a pod be ready, or not."""

    def say(event: Event) -> None:
        body = {"status": {"conditions": [condition(event)]}}
        server.ask(Question("PATCH", f"{path}/status", body, STRATEGIC))

    return say


def condition(event: Event) -> Json:
    """Return a pod's condition; services that are left to others are none that it fails to serve."""
    return {
        "type": GATE,
        "status": "False" if event.reason == FAILED else "True",
        "reason": event.reason,
        "message": event.message[:1024],
        "lastTransitionTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
