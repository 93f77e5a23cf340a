"""Makes of each Connection what is rendered of it, says how it stands, and tries again what failed.

What is to be done is found anew from the whole picture each time, so that it does not matter what was
heard, or missed, or done before. All is written by server-side apply (Kubernetes, "Server-Side Apply"), of
which the server finds the difference: a Service keeps its address, and what others write stays. What was
made for a Connection names it as its owner, and goes with it by Kubernetes' own garbage collection, if this
does not run. So nothing of ours, no finalizer either, is on objects that somebody wants to delete.
"""

from __future__ import annotations

import heapq
import re
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from edge.devices import kinds
from edge.devices.kinds import Connection, Device
from edge.devices.picture import (
    CONNECTIONS,
    DEPLOYMENTS,
    PODS,
    SERVICES,
    Held,
    Key,
    Picture,
    key_of,
    ready,
    serves,
)
from edge.devices.rendering import OF_CONNECTION, Settings, asks, rendered
from edge.events import Events
from edge.fields import Problem
from edge.http import MERGE, Json, Question, RefusedError, Server

COMPONENT = "edge-operator"
APPLY = "application/apply-patch+yaml"
FIRST_RETRY, LAST_RETRY = 0.2, 10.0
VALID, READY, REACHABLE = "Valid", "Ready", "Reachable"
AVAILABLE, REFUSED = "Available", "Refused"
SILENT = "Silent"
UNHEALTHY = "Unhealthy"  # a kubelet's word for who does not answer
# What a runtime says, and before which it says what a plugin said.
_REFUSED = re.compile(r"plugin type=\"[^\"]*\" failed \(add\): (.*)", re.DOTALL)


class Queue:
    """Whom to look after, and from when on; nobody is looked after twice at once."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._due: dict[Key, float] = {}
        self._heap: list[tuple[float, Key]] = []
        self._busy: set[Key] = set()
        self._tries: dict[Key, int] = {}
        self._closed = False

    def put(self, key: Key, delay: float = 0.0) -> None:
        """Have somebody looked after, at the earliest of all times asked for."""
        at = time.monotonic() + delay
        with self._condition:
            if at < self._due.get(key, float("inf")):
                self._due[key] = at
                heapq.heappush(self._heap, (at, key))
                self._condition.notify()

    def take(self) -> Key | None:
        """Return who is due, when somebody is; nobody once it is closed."""
        with self._condition:
            while not self._closed:
                wait = None
                if self._heap:
                    at, key = self._heap[0]
                    wait = at - time.monotonic()
                    if self._due.get(key) != at:
                        heapq.heappop(self._heap)
                        continue
                    if wait <= 0:
                        heapq.heappop(self._heap)
                        del self._due[key]
                        if key in self._busy:
                            self.put(key, FIRST_RETRY)
                            continue
                        self._busy.add(key)
                        return key
                self._condition.wait(wait)
            return None

    def done(self, key: Key, again: bool) -> None:
        """Say that somebody was looked after, and whether that is to be tried again, later each time."""
        with self._condition:
            self._busy.discard(key)
            tries = self._tries[key] = self._tries.get(key, 0) + 1 if again else 0
        if again:
            self.put(key, min(FIRST_RETRY * 2 ** min(tries, 10), LAST_RETRY))

    def close(self) -> None:
        """Let whoever takes end."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()


class Verdict(NamedTuple):
    """How an object stands in one respect, as a condition of it says."""

    kind: str
    holds: bool | None  # nothing: nobody knows
    reason: str
    message: str


class Said(NamedTuple):
    """What an event says of a pod."""

    reason: str
    message: str


class Pods(NamedTuple):
    """How many pods of a Connection are ready, and are to be; ``late``: there is one that is not yet."""

    ready: int
    wanted: int
    late: bool


class Reconciler:
    """Looks after one Device or Connection at a time, for as many threads as ask."""

    def __init__(self, server: Server, picture: Picture, settings: Settings, may: Callable[[], bool]) -> None:
        self._server, self._picture, self._settings, self._may = server, picture, settings, may
        self._events = Events(server, COMPONENT)
        self._said: dict[Key, str] = {}

    def reconcile(self, key: Key) -> bool:
        """Make what is to be, and say how it stands; return whether to try again. Raises AwayError."""
        one = self._picture.held(key)
        if key.kind == CONNECTIONS and self._may():
            self._forgotten(key)
            if one is None:
                self._swept(key)
        if one is None or one.document["metadata"].get("deletionTimestamp") or not self._may():
            return False
        problems = self._picture.problems(key)
        verdicts, failed = [_valid(problems)], ""
        more: Json = {}
        if key.kind == CONNECTIONS:
            try:
                self._made(key, one)
            except RefusedError as error:
                if error.may_pass:
                    raise
                failed = str(error)
            except ConflictError as error:
                failed = str(error)
            more = self._standing(key, one)
            pods = self._pods(key, one)
            why = self._why(key) if pods.ready < pods.wanted or pods.late else None
            verdicts.append(_ready(pods, failed, why))
        elif isinstance(one.said, Device):
            closed = self._picture.closed(key.name)
            connections = self._picture.connections(key.name)
            verdicts.append(reachable(connections, one.said, self._settings, closed))
        self._tell(key, one, verdicts, more)
        return bool(failed)

    def _made(self, key: Key, held: Held) -> None:
        """Make, change or remove what a Connection has. Raises AwayError, ConflictError."""
        wanted = self._wanted(held)
        if wanted is None:
            self._removed(Key(DEPLOYMENTS, key.namespace, f"{kinds.PREFIX}{key.name}"), held)
            return
        for kind, one in ((SERVICES, wanted[1]), (DEPLOYMENTS, wanted[0])):
            at = Key(kind, key.namespace, one["metadata"]["name"])
            known = self._picture.object(at) or self._asked(at)
            _require_own(at, known, held)
            if known is None or not covers(known, one):
                path = f"{at.path}?fieldManager={COMPONENT}&force=true"
                self._picture.put(kind, self._server.ask(Question("PATCH", path, one, APPLY)), False)

    def _wanted(self, held: Held) -> tuple[Json, Json] | None:
        """Return what a Connection is to have; nothing if nobody can know."""
        connection = held.said
        device = self._picture.device(connection.device) if isinstance(connection, Connection) else None
        if device is None or not isinstance(connection, Connection):
            return None
        try:
            made = rendered(connection, device, held.document["metadata"]["uid"], self._settings)
        except LookupError:
            return None
        return made if made[1]["spec"]["ports"] else None

    def _swept(self, key: Key) -> None:
        """Remove what a Connection left that is gone. Raises AwayError.

        The garbage collector does so, too; of a kind that is new it hears half a minute later.
        """
        made = [Key(kind, key.namespace, f"{kinds.PREFIX}{key.name}") for kind in (SERVICES, DEPLOYMENTS)]
        left = [(at, known) for at in made if (known := self._picture.object(at)) is not None]
        if not left or self._asked(key) is not None:
            return
        for at, known in left:
            owners = known["metadata"].get("ownerReferences") or ()
            if any(one.get("kind") == kinds.CONNECTION and one.get("name") == key.name for one in owners):
                self._deleted(at, known)

    def _forgotten(self, key: Key) -> None:
        """Let the API forget a Connection's pods that have ended. Raises AwayError.

        A kubelet of 1.20 tells it to once the sandbox is cleared away. It keeps that one until it collects
        garbage, up to a minute, if it heard of the containers' end before the sandbox had stopped
        (pkg/kubelet/kubelet.go, deletePodSandbox and ContainerGCPeriod).
        """
        for pod in self._picture.ended(key):
            self._deleted(key_of(PODS, pod), pod, gracePeriodSeconds=0)

    def _removed(self, at: Key, held: Held) -> None:
        """Remove a Deployment of which nobody knows any more where it leads to; its Service then refuses."""
        known = self._picture.object(at)
        if known is not None and _owned(known, held):
            self._deleted(at, known)

    def _deleted(self, at: Key, known: Json, **more: int) -> None:
        uid = known["metadata"]["uid"]
        options = {"preconditions": {"uid": uid}, "propagationPolicy": "Background", **more}
        try:
            self._server.ask(Question("DELETE", at.path, options))
        except RefusedError as error:
            if error.status not in (404, 409):
                raise
        self._picture.put(at.kind, known, True)

    def _asked(self, at: Key) -> Json | None:
        """Return an object that nobody spoke of: somebody else's may have the name. Raises AwayError."""
        try:
            return self._server.ask(Question("GET", at.path))
        except RefusedError as error:
            if error.status != 404:
                raise
            return None

    def _standing(self, key: Key, held: Held) -> Json:
        """Return what a Connection's status says besides its conditions."""
        name = f"{kinds.PREFIX}{key.name}"
        service = self._picture.object(Key(SERVICES, key.namespace, name))
        if service is None or not _owned(service, held):
            return {"ready": 0}
        ports = [f"{one['port']}/{one['protocol']}" for one in service["spec"].get("ports") or ()]
        ready = self._pods(key, held).ready
        return {"address": f"{name}.{key.namespace}.svc", "ports": ports, "ready": ready}

    def _pods(self, key: Key, held: Held) -> Pods:
        known = self._picture.object(Key(DEPLOYMENTS, key.namespace, f"{kinds.PREFIX}{key.name}"))
        if known is None or not _owned(known, held):
            return Pods(0, 0, False)
        status = known.get("status") or {}
        wanted = int(known["spec"]["replicas"])
        answering = max(0, int(status.get("readyReplicas") or 0) - len(self._silent(key)))
        return Pods(answering, wanted, bool(status.get("unavailableReplicas")))

    def _silent(self, key: Key) -> list[Json]:
        """Return a Connection's pods that a kubelet said to be ready, and that do not answer now."""
        return [pod for pod in self._picture.pods(key) if ready(pod) and not serves(pod)]

    def _why(self, key: Key) -> Said | None:
        """Return what was said last against a pod of a Connection that is not ready."""
        for pod in self._picture.pods(key):
            if not ready(pod) and (event := self._picture.warning(pod)):
                return _said(event)
        for pod in self._silent(key):
            return Said(SILENT, f"{pod['metadata']['name']} on {pod['spec']['nodeName']} does not answer")
        return None

    def _tell(self, key: Key, held: Held, verdicts: Sequence[Verdict], more: Json) -> None:
        """Write a status that is another now, and an event of what is wrong now. Raises AwayError."""
        before = held.document.get("status") or {}
        generation = held.document["metadata"].get("generation", 0)
        conditions = [_condition(one, before, generation) for one in verdicts]
        status = {**more, "conditions": conditions}
        if not covers(before, status):
            try:
                self._server.ask(Question("PATCH", f"{key.path}/status", {"status": status}, MERGE))
            except RefusedError as error:
                if error.status == 404:  # it is gone by now
                    return
                raise
        wrong = next((one for one in verdicts if one.reason in ("Invalid", "Failed", REFUSED)), None)
        said = f"{wrong.reason}: {wrong.message}" if wrong else ""
        if wrong and said != self._said.get(key):
            kind = kinds.CONNECTION if key.kind == CONNECTIONS else kinds.DEVICE
            about = {"apiVersion": kinds.API, "kind": kind, "uid": held.document["metadata"]["uid"]}
            about.update({"name": key.name, **({"namespace": key.namespace} if key.namespace else {})})
            self._events.say(about, wrong.reason, wrong.message)
        self._said[key] = said


class ConflictError(Exception):
    """Somebody else has an object of the name that is needed; the message says which."""


def _require_own(at: Key, known: Json | None, held: Held) -> None:
    if known is not None and (not _owned(known, held) or known["metadata"].get("deletionTimestamp")):
        kind = "Service" if at.kind == SERVICES else "Deployment"
        raise ConflictError(f"{kind} {at.namespace}/{at.name} is there, and not this connection's")


def _owned(known: Json, held: Held) -> bool:
    owners = known["metadata"].get("ownerReferences") or ()
    labels = known["metadata"].get("labels") or {}
    uid = held.document["metadata"]["uid"]
    return OF_CONNECTION in labels and any(one.get("uid") == uid for one in owners)


def _valid(problems: Sequence[Problem]) -> Verdict:
    if problems:
        return Verdict(VALID, False, "Invalid", "; ".join(map(str, problems)))
    return Verdict(VALID, True, "Valid", "nothing is wrong")


def _ready(pods: Pods, failed: str, why: Said | None) -> Verdict:
    """Return how a Connection's pods stand, with what is said against one that is not ready."""
    if failed:
        return Verdict(READY, pods.ready > 0, "Failed", failed)
    if not pods.wanted:
        return Verdict(READY, False, "Stopped", "there is nothing to connect to")
    reason, message = why or ("NotReady", "")
    text = f"{pods.ready} of {pods.wanted} proxy pods" + (f": {message}" if message else "")
    if pods.ready and reason != REFUSED:
        reason = AVAILABLE
    return Verdict(READY, pods.ready > 0, reason, text)


def _said(event: Json) -> Said:
    """Return what an event says; of a plugin that refused a pod, that one's own words."""
    reason, message = str(event.get("reason")), str(event.get("message"))
    refused = _REFUSED.search(message)
    return Said(REFUSED, refused[1].strip()) if refused else Said(reason, message)


def reachable(
    connections: Sequence[tuple[Connection, Json]],
    device: Device,
    settings: Settings,
    closed: Collection[int] = (),
) -> Verdict:
    """Return whether a device answers, so far as it is asked by proxy pods that translate: by TCP.

    ``closed``: the ports that it is known not to accept, while it does others.
    """
    if closed:
        ports = ", ".join(map(str, sorted(closed)))
        return Verdict(REACHABLE, False, "NoAnswer", f"it does not accept TCP at {ports}, and does elsewhere")
    conditions = [
        one
        for connection, status in connections
        if settings.probe_seconds and asks(connection, device)
        for one in status.get("conditions") or ()
        if one["type"] == READY
    ]
    if any(one["reason"] == AVAILABLE for one in conditions):
        return Verdict(REACHABLE, True, "Answers", "it answers a proxy pod")
    silent = next((one for one in conditions if one["reason"] == UNHEALTHY), None)
    if silent:
        return Verdict(REACHABLE, False, "NoAnswer", silent["message"])
    return Verdict(REACHABLE, None, "NotAsked", "no proxy pod asks it")


def _condition(verdict: Verdict, status: Mapping[str, Any], generation: int) -> Json:
    """Return a condition, with the time since when it has been as it is."""
    conditions = status.get("conditions") or ()
    before: Json = next((one for one in conditions if one.get("type") == verdict.kind), {})
    holds = {True: "True", False: "False", None: "Unknown"}[verdict.holds]
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    if before.get("status") == holds:
        since = before.get("lastTransitionTime", since)
    return {
        "type": verdict.kind,
        "status": holds,
        "reason": verdict.reason,
        "message": verdict.message[:1024],
        "observedGeneration": generation,
        "lastTransitionTime": since,
    }


def covers(known: Any, wanted: Any) -> bool:
    """Whether an object has all that is wanted of it; what a server or somebody else adds does not matter."""
    if isinstance(wanted, Mapping) and isinstance(known, Mapping):
        return all(key in known and covers(known[key], value) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(known, list):
        return len(known) == len(wanted) and all(map(covers, known, wanted))
    return bool(known == wanted)
