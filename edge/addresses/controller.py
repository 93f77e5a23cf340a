"""The program: gives each Node of a cluster its block of pod addresses, as ClusterCIDRConfigs say.

``/usr/bin/python3 -IS PATH/edge addresses --api URL ...``. Several may run; one leads. It lists and watches,
decides in one thread, writes with many, and goes on for ever. A term ends when the lease could not be renewed
in time; all is listed anew in the next.
"""

from __future__ import annotations

import argparse
import heapq
import math
import queue
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from ipaddress import ip_network
from itertools import islice
from typing import NamedTuple

from edge import leader, webhook
from edge.access import Access, access_of, add_options, work_with
from edge.addresses import kinds
from edge.addresses.allocation import Allocator, Range
from edge.addresses.arrivals import Arrivals
from edge.addresses.books import WAITS, Books, Gift, Held, Outcome, Rules, without_mark
from edge.addresses.cluster import CONFIGS, KINDS, NODES, Cluster
from edge.addresses.judging import Judge
from edge.addresses.space import Network
from edge.http import AwayError, Json, RefusedError, Server
from edge.leader import PART, Leader, positive
from edge.log import Logger
from edge.watch import Listed, News
from edge.webhook import Webhook

LEASE, AT_ONCE = "kube-system/concorde-addresses", 16
TICK_SECONDS = 0.1
# What is written about configs and nodes, at most: a config's status, an event about a node once more, and
# nodes that are looked at for what an event about them would say.
STATUS_SECONDS, AGAIN_SECONDS, CHANGED_SECONDS, EVENTS_A_TICK = 1.0, 600.0, 30.0, 2
FIRST_RETRY, LAST_RETRY = 0.1, 5.0
ISLAND = object()  # --island without a value


class Options(NamedTuple):
    """What the program is told when it is started."""

    access: Access
    rules: Rules
    lease: str
    lease_seconds: int
    at_once: int
    leave: bool
    webhook: str
    webhook_port: int

    def server(self) -> Server:
        """Return the API. Raises AccessError."""
        return self.access.server(self.at_once + 4)


def main(arguments: Sequence[str]) -> int:
    """Run until a signal ends it: 0; or return 2 for options that cannot be."""
    log = Logger(sys.stderr)
    options = parse(arguments)

    def work(server: Server, stop: threading.Event) -> int:
        if options.leave:
            return leave(Cluster(server, options.lease_seconds), log)
        judge = Judge(options.rules, server, log)
        with Webhook(options.webhook, options.webhook_port, server, judge.answer, log).running(stop):
            lead(options, server, stop, log)
        return 0

    return work_with(options.server, work, log)


def lead(options: Options, server: Server, stop: threading.Event, log: Logger) -> None:
    """Give blocks whenever the lease is held, until ``stop`` is set."""
    leader.lead(
        server,
        options.lease,
        options.lease_seconds,
        lambda held: Term(options, held, log).run(stop),
        stop,
        log,
    )


class Term:
    """What is done from when a lease is got until it is lost."""

    def __init__(self, options: Options, leader: Leader, log: Logger) -> None:
        self._server = options.server()
        self._spare = options.lease_seconds * (1 - PART)  # in which what was begun is over
        self._cluster = Cluster(self._server, self._spare)
        arrivals = Arrivals(Allocator(options.rules.reserved))
        self._books = Books(arrivals, NODES, CONFIGS, options.rules, log.once)
        self._leader, self._log = leader, log
        self._inbox: queue.SimpleQueue[News | Outcome] = queue.SimpleQueue()
        self._givers = ThreadPoolExecutor(options.at_once, "give")
        self._later: list[tuple[float, Gift]] = []
        self._tries: dict[str, int] = {}
        self._teller = Teller(self._books, self._cluster, log)

    def run(self, stop: threading.Event) -> None:
        """Give blocks until the lease is lost, or ``stop`` is set; nothing is on its way any more then."""
        over = threading.Event()
        threads = [threading.Thread(target=self._leader.keep, args=(over,), daemon=True)]
        for kind in KINDS:
            arguments = (kind, self._inbox.put, self._log)
            threads.append(threading.Thread(target=self._cluster.follow, args=arguments, daemon=True))
        for thread in threads:
            thread.start()
        try:
            while not over.is_set() and not stop.is_set():
                self._turn()
        finally:
            over.set()
            with closing(self._server):  # whatever fails: who follows an API would go on for ever
                self._givers.shutdown(cancel_futures=True)
                self._teller.close()
                self._take_all()
                if self._later:
                    time.sleep(self._spare)  # what was not answered may yet be written

    def _turn(self) -> None:
        """Take what is there, and do what follows from it."""
        with suppress(queue.Empty):
            self._take(self._inbox.get(timeout=TICK_SECONDS))
            self._take_all()
        for gift in self._books.gifts():
            self._give(gift)
        while self._later and self._later[0][0] <= time.monotonic():
            anew = self._books.anew(heapq.heappop(self._later)[1])
            if anew is not None:
                self._give(anew)
        self._teller.turn()

    def _take_all(self) -> None:
        with suppress(queue.Empty):
            while True:
                self._take(self._inbox.get_nowait())

    def _take(self, what: News | Outcome) -> None:
        if not isinstance(what, Outcome):
            if isinstance(what, Listed) and what.kind == NODES:
                self._cluster.forget_families()
            self._books.take(what)
            return
        if what.problem:
            self._log.once(what.problem)
        gift = self._books.conclude(what)
        if gift is None:
            self._tries.pop(what.gift.uid, None)
            return
        tries = self._tries[gift.uid] = self._tries.get(gift.uid, 0) + 1
        wait = min(FIRST_RETRY * 2 ** min(tries, 10), LAST_RETRY)
        heapq.heappush(self._later, (time.monotonic() + wait, gift))

    def _give(self, gift: Gift) -> None:
        future = self._givers.submit(self._cluster.give, gift, self._leader.leads)
        future.add_done_callback(self._given)

    def _given(self, future: Future[Outcome]) -> None:
        if not future.cancelled():
            self._inbox.put(future.result())


class Teller:
    """Says in configs and events what nodes got and why others wait: never more than a little at a time.

    What an API refuses it may refuse for ever, such as a policy of somebody else's: it is tried again after a
    while, and is in the way of nothing else.
    """

    def __init__(self, books: Books, cluster: Cluster, log: Logger) -> None:
        self._books, self._cluster, self._log = books, cluster, log
        self._writers = ThreadPoolExecutor(2, "tell")
        self._busy: dict[str, Future[None]] = {}  # by what is written about
        # When configs of which version may be marked again.
        self._marked: dict[tuple[str, str], float] = {}
        self._next = 0.0
        self._statuses: dict[str, tuple[float, Json]] = {}  # by uid: when it was looked at, and what is told
        self._reasons: dict[str, str] = {}  # by uid: of which an event was written
        self._order: dict[str, None] = {}  # nodes that wait, and the next to look at
        self._said: dict[str, tuple[float, str, str]] = {}  # when, to which node, and what

    def turn(self) -> None:
        """Say what is due; not more often than there is a tick."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + TICK_SECONDS
        self._busy = {about: future for about, future in self._busy.items() if not future.done()}
        for held, metadata in self._books.marks():
            version = (held.name, held.document["metadata"]["resourceVersion"])
            due = self._marked.get(version, 0.0) <= time.monotonic()
            if due and self._begin(held.name, self._mark, held, metadata):
                self._marked[version] = math.inf
        for held in self._books.configs.values():
            self._status(held)
        self._events()

    def close(self) -> None:
        """End what is being written."""
        self._writers.shutdown(cancel_futures=True)

    def _begin(self, about: str, write: Callable[..., None], *arguments: object) -> bool:
        """Begin to write, unless something about the same is being written; tell whether it was begun."""
        if about in self._busy:
            return False
        self._busy[about] = self._writers.submit(write, *arguments)
        return True

    def _mark(self, held: Held, metadata: Json) -> None:
        try:
            self._cluster.mark(held, metadata)
        except AwayError as error:
            self._log.once(str(error))
            version = (held.name, held.document["metadata"]["resourceVersion"])
            self._marked[version] = time.monotonic() + _pause(error)

    def _status(self, held: Held) -> None:
        uid, now = held.document["metadata"]["uid"], time.monotonic()
        when, before = self._statuses.get(uid, (0.0, held.document.get("status") or {}))
        if now - when < STATUS_SECONDS:
            return
        status = self._books.status(held, before, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
        if status == before or self._begin(held.name, self._tell, held, status):
            self._statuses[uid] = (now, status)

    def _tell(self, held: Held, status: Json) -> None:
        uid = held.document["metadata"]["uid"]
        try:
            self._cluster.tell(held, status)
            (condition,) = status["conditions"]
            if condition["status"] == "False" and self._reasons.get(uid) != condition["reason"]:
                self._cluster.event(_about_config(held), condition["reason"], condition["message"])
            self._reasons[uid] = condition["reason"]
        except AwayError as error:
            self._log.once(str(error))
            before = held.document.get("status") or {}
            self._statuses[uid] = (time.monotonic() + _pause(error) - STATUS_SECONDS, before)

    def _events(self) -> None:
        """Look at a few of the nodes that wait, and say why they do if that is news, or was said long ago."""
        waiting = self._books.arrivals.waiting
        if len(self._said) > 2 * len(waiting) + 100:
            self._said = {name: said for name, said in self._said.items() if name in waiting}
        new = islice((name for name in waiting if name not in self._said), EVENTS_A_TICK)
        for name in (*new, *islice(self._order, EVENTS_A_TICK)):
            self._order.pop(name, None)
            if name in waiting:
                self._order[name] = None
                self._event(name, waiting[name].uid)

    def _event(self, name: str, uid: str) -> None:
        why, now = self._books.arrivals.why(name), time.monotonic()
        when, whom, said = self._said.get(name, (0.0, "", ""))
        due = AGAIN_SECONDS if why == said else CHANGED_SECONDS if said else LAST_RETRY
        if (whom != uid or now - when >= due) and self._begin(f"{name}/", self._say, name, uid, why):
            self._said[name] = (now, uid, why)

    def _say(self, name: str, uid: str, why: str) -> None:
        # As Kubernetes' own programs do: describe looks for a node's events by its name.
        about = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": name}
        try:
            self._cluster.event(about, WAITS, why)
        except AwayError as error:
            self._log.once(str(error))
            self._said[name] = (time.monotonic() + _pause(error) - LAST_RETRY, uid, "")


def _pause(error: AwayError) -> float:
    """Return after how many seconds a write is tried again: what was refused once is not taken at once."""
    return LAST_RETRY if isinstance(error, RefusedError) else FIRST_RETRY


def _about_config(held: Held) -> Json:
    metadata = held.document["metadata"]
    about = {key: metadata[key] for key in ("name", "namespace", "uid") if metadata.get(key)}
    group = held.kind.removeprefix("/apis/").rpartition("/")[0]
    return {"apiVersion": group, "kind": "ClusterCIDRConfig", **about}


def leave(cluster: Cluster, log: Logger) -> int:
    """Take our marks from all configs, so that they and their kinds can be deleted; nodes keep theirs.

    Returns 1 if the API does not answer.
    """
    try:
        for held in cluster.configs():
            cluster.mark(held, without_mark(held.document))
    except AwayError as error:
        log(str(error))
        return 1
    return 0


def parse(arguments: Sequence[str]) -> Options:
    """Return what arguments say; what cannot be ends the program with status 2 and a word on it."""
    parser = argparse.ArgumentParser(
        prog="edge addresses",
        description="Give each Node of a cluster its block of pod addresses, as ClusterCIDRConfigs say.",
    )
    add = parser.add_argument
    add_options(parser)
    add(
        "--reserved", metavar="CIDR", action="append", default=[], type=_network,
        help="a range of which nodes get nothing, such as services' and machines'; any number of times",
    )  # fmt: skip
    add(
        "--island", metavar="CIDR:MASK", nargs="?", const=ISLAND, type=_range,
        help="nodes wrap packets between pods: configs of two families must have this IPv4 range and prefix "
        "length of a block, like 10.60.0.0/16:24; without a value those of the first such config",
    )  # fmt: skip
    leader.add_options(parser, LEASE)
    add("--at-once", metavar="N", default=AT_ONCE, type=positive, help="patches at a time (%(default)s)")
    add(
        "--webhook", metavar="NAME", default="",
        help="the ValidatingWebhookConfiguration by which API servers ask whether a config may be so; which "
        "name they ask it says, and is told whom to trust",
    )  # fmt: skip
    add(
        "--webhook-port", metavar="N", default=webhook.PORT, type=_port,
        help="where it answers, on all addresses (%(default)s)",
    )  # fmt: skip
    add(
        "--leave", action="store_true",
        help="only take finalizers off configs, so that they can be deleted; nodes keep what they have",
    )  # fmt: skip
    told = parser.parse_args(arguments)
    access = access_of(told)
    if not access.url:
        parser.error("--api or --in-cluster: one of them must say where the API is")
    cluster = told.island if isinstance(told.island, Range) else None
    return Options(
        access,
        Rules(tuple(told.reserved), told.island is not None, cluster),
        told.lease, told.lease_seconds, told.at_once, told.leave, told.webhook, told.webhook_port,
    )  # fmt: skip


def _network(text: str) -> Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _range(text: str) -> Range:
    """Return an IPv4 range and the prefix length of a node's block, as a config would have them."""
    cidr, _, mask = text.rpartition(":")
    spec = {"ipv4": {"cidr": cidr, "perNodeMaskSize": int(mask) if mask.isdecimal() else mask}}
    try:
        return kinds.parse({"spec": spec}).ranges[0]
    except kinds.BadConfigError as error:
        what = "; ".join(problem.what for problem in error.problems)
        raise argparse.ArgumentTypeError(f"{text[:60]!r} is not like 10.60.0.0/16:24: {what}") from None


def _port(text: str) -> int:
    if positive(text) >= 1 << 16:
        raise argparse.ArgumentTypeError(f"{text[:20]!r} is not a port from 1 to 65535")
    return int(text)
