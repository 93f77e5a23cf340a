"""Which of several controllers gives blocks: the one that holds a Lease, and has renewed it in time.

A lease is over when nobody has changed it for its duration, by the clock of who waits for it: what times are
written in it is for people (as client-go's leader election does; clocks of machines may differ).
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from edge.http import AwayError, Json, Question, RefusedError, Server

LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
# How often a lease is renewed in its time, and after which part of that its holder begins nothing more. What
# was begun before is over when the lease is.
RENEWALS, PART = 4, 0.5


class Tenure(NamedTuple):
    """How long a lease holds (seconds), and who asks for it."""

    seconds: float
    holder: str


def new_holder() -> str:
    """Return a name that no other process has: one that comes after does not go on with what this began."""
    return f"{socket.gethostname()}_{os.getpid()}_{os.urandom(4).hex()}"


class Leader:
    """Asks for a lease, and keeps it; ``lease`` is NAMESPACE/NAME."""

    def __init__(self, server: Server, lease: str, tenure: Tenure, log: Callable[[str], None]) -> None:
        namespace, _, name = lease.partition("/")
        self._all, self._own = LEASES.format(namespace), f"{LEASES.format(namespace)}/{name}"
        self._name, self._namespace = name, namespace
        self._server, self._tenure, self._log = server, tenure, log
        self._seen: tuple[str, str] = ("", "")  # whose it was, and its version
        self._seen_at = 0.0
        self._until = 0.0

    def leads(self) -> bool:
        """Whether something may be begun."""
        return time.monotonic() < self._until

    def wait(self, stop: threading.Event) -> bool:
        """Return when the lease is held, or ``stop`` is set; tell whether it is held."""
        waits = ""
        while not stop.is_set() and not self.leads():
            try:
                holder = self._try()
                if holder and holder != waits:
                    self._log(f"waiting: {holder} leads")
                waits = holder
            except AwayError as error:
                if waits != "?":
                    self._log(f"cannot get the lease {self._namespace}/{self._name}: {error}")
                waits = "?"
            if not self.leads():
                stop.wait(self._tenure.seconds / RENEWALS / 2)
        return self.leads()

    def keep(self, over: threading.Event) -> None:
        """Renew the lease until it cannot be, or ``over`` is set; it is set then."""
        while not over.wait(self._tenure.seconds / RENEWALS) and self.leads():
            try:
                if self._try():
                    self._until = 0.0  # somebody took it
            except AwayError as error:
                self._log(f"cannot renew the lease: {error}")
        over.set()

    def resign(self) -> None:
        """Let somebody else lead at once."""
        if self.leads():
            self._until = 0.0
            try:
                lease = self._server.ask(Question("GET", self._own))
                if lease["spec"].get("holderIdentity") == self._tenure.holder:
                    lease["spec"]["holderIdentity"] = ""
                    self._server.ask(Question("PUT", self._own, lease))
            except AwayError as error:
                self._log(f"cannot give up the lease: {error}")

    def _try(self) -> str:
        """Take or renew the lease; return who else has it, or nothing. Raises AwayError."""
        begun = time.monotonic()
        try:
            lease = self._server.ask(Question("GET", self._own))
        except RefusedError as error:
            if error.status != 404:
                raise
            lease = {"metadata": {"name": self._name, "namespace": self._namespace}}
        spec = lease.get("spec") or {}
        holder = str(spec.get("holderIdentity") or "")
        if holder not in ("", self._tenure.holder) and not self._is_over(lease, spec):
            return holder
        return self._take(lease, spec, begun)

    def _is_over(self, lease: Json, spec: Any) -> bool:
        seen = (str(spec.get("holderIdentity")), str(lease["metadata"].get("resourceVersion")))
        if seen != self._seen:
            self._seen, self._seen_at = seen, time.monotonic()
        seconds = spec.get("leaseDurationSeconds")
        return time.monotonic() - self._seen_at > (
            seconds if isinstance(seconds, int) else self._tenure.seconds
        )

    def _take(self, lease: Json, spec: Any, begun: float) -> str:
        now = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime())}.000000Z"
        if spec.get("holderIdentity") != self._tenure.holder:
            changes = spec.get("leaseTransitions")
            spec = {
                "holderIdentity": self._tenure.holder,
                "acquireTime": now,
                "leaseTransitions": changes + 1 if isinstance(changes, int) else 0,
            }
        held = {**spec, "leaseDurationSeconds": max(1, round(self._tenure.seconds)), "renewTime": now}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", **lease, "spec": held}
        there = "resourceVersion" in lease["metadata"]
        try:
            self._server.ask(
                Question("PUT", self._own, lease) if there else Question("POST", self._all, lease)
            )
        except RefusedError as error:
            if error.status != 409:
                raise
            return "somebody else"
        self._until = begun + self._tenure.seconds * PART
        return ""
