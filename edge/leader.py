"""Which of several controllers acts: the one that holds a Lease, and has renewed it in time.

A lease is over when nobody has changed it for its duration, by the clock of who waits for it: what times are
written in it is for people (as client-go's leader election does; clocks of machines may differ).
"""

from __future__ import annotations

import argparse
import hashlib
import os
import socket
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Optional

from edge.http import AwayError, Json, Question, RefusedError, Server

LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
# How often a lease is renewed in its time, and after which part of that its holder begins nothing more. What
# was begun before is over when the lease is.
RENEWALS, PART = 4, 0.5
SECONDS = 6
BOOT = Path("/proc/sys/kernel/random/boot_id")
FAILED_SECONDS = 5.0  # after a term that failed


class Tenure(NamedTuple):
    """How long a lease holds (seconds), and who asks for it."""

    seconds: float
    holder: str


def add_options(parser: argparse.ArgumentParser, lease: str) -> None:
    """Let a program be told its lease, as ``lease`` (NAMESPACE/NAME) and ``lease_seconds``."""
    add = parser.add_argument
    add(
        "--lease", metavar="NAMESPACE/NAME", default=lease, type=_lease,
        help="the Lease by which one leads; its namespace must be there (%(default)s)",
    )  # fmt: skip
    add(
        "--lease-seconds", metavar="N", default=SECONDS, type=positive,
        help="after so long another leads in place of one that ended without a word; a quarter of it is what "
        "a patch may take (%(default)s)",
    )  # fmt: skip


def positive(text: str) -> int:
    """Return the number that an option is. Raises ArgumentTypeError."""
    if not text.isascii() or not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text[:20]!r} is not a number from 1")
    return int(text)


def new_holder() -> str:
    """Return a name that no other process has: one that comes after does not go on with what this began."""
    return f"{socket.gethostname()}_{os.getpid()}_{os.urandom(4).hex()}"


class Heir:
    """A holder's name that is the next process's, too, in place of this one once it has ended.

    So a lease goes on, and nobody waits for its end. That is for who does no harm by what was begun and comes
    late: whose writes say of which version they are. Only one process has the name at a time: it is the
    machine's boot's, and the network namespace's, in which a socket without a file can be bound once, one for
    each API and lease (unix(7)). The kernel lets it go when the process has ended, however that was. Whoever
    finds it taken has a name of its own.
    """

    def __init__(self, url: str, lease: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.holder = new_holder()
        try:
            self._socket.bind(f"\0concorde-{hashlib.sha256(f'{url} {lease}'.encode()).hexdigest()}")
            boot = BOOT.read_text(encoding="ascii")[:8]
            self.holder = f"{socket.gethostname()}_{boot}_{Path('/proc/self/ns/net').stat().st_ino}"
        except OSError:
            self.close()

    def close(self) -> None:
        """Let another process have the name."""
        self._socket.close()


def lead(
    server: Server,
    lease: str,
    seconds: float,
    run: Callable[[Leader], None],
    stop: threading.Event,
    log: Callable[[str], None],
    holder: str = "",
) -> None:
    """Let a term run whenever the lease is held, until ``stop`` is set; ``holder`` is a name of one's own."""
    tenure = Tenure(seconds, holder or new_holder())
    leader = Leader(server, lease, tenure, log)
    while leader.wait(stop):
        log(f"{tenure.holder} leads")
        try:
            run(leader)
        except Exception:  # of any kind: who ended would act no more
            log(traceback.format_exc())
            stop.wait(FAILED_SECONDS)
        if not stop.is_set():
            log("leads no more")
    leader.resign()


class Leader:
    """Asks for a lease, and keeps it; ``lease`` is NAMESPACE/NAME."""

    def __init__(self, server: Server, lease: str, tenure: Tenure, log: Callable[[str], None]) -> None:
        namespace, _, name = lease.partition("/")
        self._all, self._own = LEASES.format(namespace), f"{LEASES.format(namespace)}/{name}"
        self._name, self._namespace = name, namespace
        self._server, self._tenure, self._log = server, tenure, log
        self._lease: Optional[Json] = None  # as it was seen last  # noqa: UP045 (nodes may have Python 3.9)
        self._seen_at = 0.0  # when it was seen first like that
        self._until = 0.0

    def leads(self) -> bool:
        """Whether something may be begun."""
        return _seconds() < self._until

    def wait(self, stop: threading.Event) -> bool:
        """Return when the lease is held, or ``stop`` is set; tell whether it is held."""
        waits = ""
        while not stop.is_set() and not self.leads():
            waits = self._attempt(waits)
            if not self.leads():
                stop.wait(self._tenure.seconds / RENEWALS / 2)
        return not stop.is_set()

    def keep(self, over: threading.Event) -> None:
        """Renew the lease until it cannot be, or ``over`` is set; it is set then."""
        while not over.wait(self._tenure.seconds / RENEWALS) and self.leads():
            self._attempt("")
        over.set()

    def resign(self) -> None:
        """Let somebody else lead at once."""
        if self._until and self._lease is not None:
            self._until = 0.0
            try:
                self._write({**self._lease["spec"], "holderIdentity": ""})
            except AwayError as error:
                self._log(f"cannot give up the lease: {error}")

    def _attempt(self, waits: str) -> str:
        """Try to have the lease for longer; return why it is not had, and log that if it is not known."""
        try:
            why = self._try()
        except Exception as error:  # of any kind: nobody else would ask for it
            self._lease = None
            why = f"{self._namespace}/{self._name}: {error if isinstance(error, AwayError) else repr(error)}"
        if why and why != waits:
            self._log(f"no lease: {why}")
        return why

    def _try(self) -> str:
        """Take or renew the lease; return who else has it, or nothing. Raises AwayError."""
        if not self.leads() or self._lease is None:
            self._read()
        spec = (self._lease or {}).get("spec") or {}
        holder = str(spec.get("holderIdentity") or "")
        if holder not in ("", self._tenure.holder) and not self._is_over(spec):
            return f"{holder} leads"
        begun = _seconds()
        now = _written(time.time_ns() // 1000)
        if holder != self._tenure.holder:
            changes = spec.get("leaseTransitions")
            spec = {
                "holderIdentity": self._tenure.holder,
                "acquireTime": now,
                "leaseTransitions": changes + 1 if isinstance(changes, int) else 0,
            }
        try:
            self._write({**spec, "leaseDurationSeconds": round(self._tenure.seconds), "renewTime": now})
        except RefusedError as error:
            if error.status != 409:
                raise
            self._lease, self._until = None, 0.0
            return "somebody else has just taken it"
        self._until = begun + self._tenure.seconds * PART
        return ""

    def _read(self) -> None:
        try:
            lease = self._server.ask(Question("GET", self._own))
        except RefusedError as error:
            if error.status != 404:
                raise
            self._lease = None
            return
        if self._lease is None or lease["metadata"] != self._lease["metadata"]:
            self._lease, self._seen_at = lease, _seconds()

    def _is_over(self, spec: Any) -> bool:
        said = spec.get("leaseDurationSeconds")
        seconds = said if isinstance(said, int) else self._tenure.seconds
        return _seconds() - self._seen_at > seconds

    def _write(self, spec: Json) -> None:
        """Write the lease, if nobody has since it was seen. Raises AwayError, RefusedError 409 if so."""
        if self._lease is None:
            metadata = {"name": self._name, "namespace": self._namespace}
            made = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
            self._lease = self._server.ask(Question("POST", self._all, {**made, "spec": spec}))
        else:
            self._lease = self._server.ask(Question("PUT", self._own, {**self._lease, "spec": spec}))


def _seconds() -> float:
    """Return a clock that nobody sets, and that goes on while the machine is suspended: so does the lease."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _written(microseconds: int) -> str:
    """Return a time as Kubernetes writes it. A lease that is renewed to the same text was not changed."""
    seconds, rest = divmod(microseconds, 1_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:06}Z"


def _lease(text: str) -> str:
    if text.count("/") != 1 or not all(text.split("/")):
        raise argparse.ArgumentTypeError(f"{text[:60]!r} is not like kube-system/concorde")
    return text
