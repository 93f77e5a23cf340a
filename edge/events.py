"""Events about objects of a Kubernetes API: one a reason, which counts how often it was so."""

from __future__ import annotations

import hashlib
import time

from edge.http import MERGE, Json, Question, RefusedError, Server

NORMAL, WARNING = "Normal", "Warning"


class Events:
    """What a component says of objects."""

    def __init__(self, server: Server, component: str) -> None:
        self._server, self._component = server, component
        self._counts: dict[str, int] = {}  # of events that were written

    def say(self, about: Json, reason: str, message: str, kind: str = WARNING) -> None:
        """Write an event about an object, or bring up to date the one before. Raises AwayError.

        ``about`` is an object reference: apiVersion, kind, name, uid, and the namespace if it is in one.
        """
        namespace = about.get("namespace") or "default"
        events = f"/api/v1/namespaces/{namespace}/events"
        digest = hashlib.sha256(f"{about['kind']} {about['uid']} {reason}".encode()).hexdigest()[:16]
        name = f"{about['name'][:230]}.{digest}"
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        news = {"message": message[:1024], "lastTimestamp": now}
        if name in self._counts:
            body = {**news, "count": self._counts[name] + 1}
            if written(self._server, Question("PATCH", f"{events}/{name}", body, MERGE)):
                self._counts[name] += 1
                return
        made = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": about,
            "reason": reason,
            "type": kind,
            "source": {"component": self._component},
            "firstTimestamp": now,
            "count": 1,
            **news,
        }
        if not written(self._server, Question("POST", events, made)):
            self._server.ask(Question("PATCH", f"{events}/{name}", news, MERGE))
        self._counts[name] = self._counts.get(name, 0) + 1


def written(server: Server, question: Question) -> bool:
    """Write what an object is to be; tell whether it was there, and as it was. Raises AwayError."""
    try:
        server.ask(question)
    except RefusedError as error:
        if error.status not in (404, 409):
            raise
        return False
    return True
