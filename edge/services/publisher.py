"""The program: publishes zone hints of a cluster's services beside its slices, where Kubernetes does not.

``/usr/bin/python3 -IS PATH/edge hints --api URL ...``. Several may run; one leads. It writes one annotation
to slices of the built-in controller, and events about Services, and nothing else to others' objects. Nothing
is kept: whoever begins makes of what the API has what it justifies.
"""

from __future__ import annotations

import argparse
import heapq
import queue
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from ipaddress import IPv4Network
from pathlib import Path
from typing import NamedTuple, Optional, Union

from edge import leader
from edge.access import Access, access_of, add_options, work_with
from edge.events import Events
from edge.http import MERGE, AwayError, Json, Question, RefusedError, Server
from edge.leader import Heir, Leader, positive
from edge.log import Logger
from edge.services.annotations import ZONE_HINTS
from edge.services.catalogue import SERVICES, Name, needed
from edge.services.discovery import Found, discover
from edge.services.hints import LIKE_DELAYS, NO_DELAYS, Delays, Event, delays_of
from edge.services.publication import Post, Publication, Task
from edge.services.support import service_range
from edge.watch import Changed, Kind, Listed, follow

NODES = "/api/v1/nodes"
LEASE, COMPONENT, AT_ONCE = "kube-system/concorde-hints", "concorde-hints", 8
TICK_SECONDS = 0.1
VERSION_SECONDS = 60.0  # how often it is looked whether Kubernetes is another version
FIRST_RETRY, LAST_RETRY = 0.05, 5.0


class Options(NamedTuple):
    """What the program is told when it is started."""

    access: Access
    delays: Delays
    services: Optional[IPv4Network]  # noqa: UP045 (nodes may have Python 3.9)
    lease: str
    lease_seconds: int
    at_once: int

    def server(self) -> Server:
        """Return the API. Raises AccessError."""
        return self.access.server(self.at_once + 4)


class Outcome(NamedTuple):
    """What became of a task; what was not done is tried again."""

    task: Task
    said: bool
    done: bool
    problem: str = ""


Message = Union[Listed, Changed, Found, Outcome]


def main(arguments: Sequence[str]) -> int:
    """Run until a signal ends it: 0; or return 2 for options that cannot be."""
    log = Logger(sys.stderr)
    options = parse(arguments)

    def work(server: Server, stop: threading.Event) -> int:
        lead(options, server, stop, log)
        return 0

    return work_with(options.server, work, log)


def lead(options: Options, server: Server, stop: threading.Event, log: Logger) -> None:
    """Publish whenever the lease is held, until ``stop`` is set."""

    def term(held: Leader) -> None:
        Term(options, held, log).run(stop)

    heir = Heir(server.url, options.lease)
    try:
        leader.lead(server, options.lease, options.lease_seconds, term, stop, log, heir.holder)
    finally:
        heir.close()


class Term:
    """What is done from when a lease is got until it is lost."""

    def __init__(self, options: Options, held: Leader, log: Logger) -> None:
        self._server = options.server()
        self._events = Events(self._server, COMPONENT)
        self._leader, self._log, self._options = held, log, options
        self._inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._writers = ThreadPoolExecutor(options.at_once, "publish")
        self._slices = ""  # where they are, once it is known
        self._publication: Optional[Publication] = None  # noqa: UP045 (nodes may have Python 3.9)
        self._later: list[tuple[float, Name]] = []
        self._tries: dict[Name, int] = {}

    def run(self, stop: threading.Event) -> None:
        """Publish until the lease is lost, Kubernetes is another version, or ``stop`` is set."""
        over = threading.Event()
        for target in (self._leader.keep, self._listen):
            threading.Thread(target=target, args=(over,), daemon=True).start()
        try:
            while not over.is_set() and not stop.is_set():
                self._turn()
        finally:
            over.set()
            self._writers.shutdown(cancel_futures=True)
            self._server.close()

    def _listen(self, over: threading.Event) -> None:
        """Follow all that is to be known, once it is known which Kubernetes it is; end with that version."""
        first = found = discover(self._server, self._log.once)
        if first is None:
            return
        self._inbox.put(first)
        for kind in (Kind(SERVICES, needed), Kind(first.slices, needed), Kind(NODES, _counted)):
            arguments = (self._server, kind, self._inbox.put, self._log)
            threading.Thread(target=follow, args=arguments, daemon=True).start()
        while found == first and not over.wait(VERSION_SECONDS):
            found = discover(self._server, lambda _: None)
        over.set()

    def _turn(self) -> None:
        """Take what is there, and do what follows from it."""
        with suppress(queue.Empty):
            self._take(self._inbox.get(timeout=self._wait()))
            while True:
                self._take(self._inbox.get_nowait())
        if self._publication is None:
            return
        while self._later and self._later[0][0] <= time.monotonic():
            self._publication.again(heapq.heappop(self._later)[1])
        for task in self._publication.tasks():
            self._writers.submit(self._do, task).add_done_callback(self._done)

    def _wait(self) -> float:
        due = self._later[0][0] - time.monotonic() if self._later else TICK_SECONDS
        return min(max(due, 0.001), TICK_SECONDS)

    def _take(self, what: Message) -> None:
        if isinstance(what, Found):
            self._log(f"Kubernetes {what.version[0]}.{what.version[1]}: {what.slices}")
            self._slices = what.slices
            options = self._options
            self._publication = Publication(what.version, options.delays, self._log.once, options.services)
        elif self._publication is None:
            raise AssertionError("nothing is followed before it is known which Kubernetes it is")
        elif isinstance(what, Outcome):
            self._conclude(what, self._publication)
        else:
            self._publication.take(what)

    def _conclude(self, outcome: Outcome, publication: Publication) -> None:
        service = outcome.task.service
        if outcome.problem:
            self._log.once(f"service {'/'.join(service)}: tried again: {outcome.problem}")
        publication.conclude(outcome.task, outcome.said)
        if outcome.done:
            self._tries.pop(service, None)
            return
        tries = self._tries[service] = self._tries.get(service, 0) + 1
        wait = min(FIRST_RETRY * 2 ** min(tries - 1, 10), LAST_RETRY)
        heapq.heappush(self._later, (time.monotonic() + wait, service))

    def _do(self, task: Task) -> Outcome:
        """Say and write what is due."""
        said = False
        try:
            for event in task.events:
                self._say(task.about, event)
            said = True
            written = [self._post(post) for post in task.posts]
            return Outcome(task, said, all(written))
        except Exception as error:  # of any kind: whatever it was, it is to be tried again
            return Outcome(task, said, False, str(error) if isinstance(error, AwayError) else repr(error))

    def _done(self, future: Future[Outcome]) -> None:
        if not future.cancelled():
            self._inbox.put(future.result())

    def _say(self, about: Json, event: Event) -> None:
        """Write an event, unless the API will not have it. Raises AwayError."""
        try:
            self._events.say(about, event.reason, event.message, event.type)
        except RefusedError as error:
            if error.may_pass:
                raise
            self._log.once(f"an event cannot be written: {error}")

    def _post(self, post: Post) -> bool:
        """Write a slice's annotation, unless it is another by now; tell whether. Raises AwayError."""
        if not self._leader.leads():
            return False
        group, _, plural = self._slices.rpartition("/")
        path = f"{group}/namespaces/{post.slice[0]}/{plural}/{post.slice[1]}"
        metadata = {"resourceVersion": post.version, "annotations": {ZONE_HINTS: post.text}}
        try:
            self._server.ask(Question("PATCH", path, {"metadata": metadata}, MERGE))
        except RefusedError as error:
            if error.status not in (404, 409):
                raise
            return error.status == 404
        return True


def _counted(node: Json) -> Json:
    """Return what is needed of a Node: its images and addresses are the most of it by far."""
    metadata, status = node["metadata"], node.get("status") or {}
    ready = [one for one in status.get("conditions") or () if one.get("type") == "Ready"]
    return {
        "metadata": {key: metadata[key] for key in ("name", "labels") if key in metadata},
        "status": {"allocatable": status.get("allocatable"), "conditions": ready},
    }


def parse(arguments: Sequence[str]) -> Options:
    """Return what arguments say; what cannot be ends the program with status 2 and a word on it."""
    parser = argparse.ArgumentParser(
        prog="edge hints",
        description="Publish zone hints of Services beside their EndpointSlices, where Kubernetes does not.",
    )
    add_options(parser)
    leader.add_options(parser, LEASE)
    parser.add_argument(
        "--services", metavar="CIDR", type=service_range,
        help="the range of services, where `edge services-proxy` runs: what it does not do is said by event",
    )  # fmt: skip
    parser.add_argument(
        "--delays", metavar="DELAYS", default=NO_DELAYS, type=_delays,
        help="seconds from zone to zone, by which mode nearest chooses, or a file with them: "
        + LIKE_DELAYS,
    )  # fmt: skip
    parser.add_argument(
        "--at-once", metavar="N", default=AT_ONCE, type=positive, help="patches at a time (%(default)s)"
    )
    told = parser.parse_args(arguments)
    access = access_of(told)
    if not access.url:
        parser.error("--api or --in-cluster: one of them must say where the API is")
    return Options(access, told.delays, told.services, told.lease, told.lease_seconds, told.at_once)


def _delays(text: str) -> Delays:
    try:
        return delays_of(text if "=" in text or not text else Path(text).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from None
