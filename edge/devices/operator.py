"""The program: makes for each Connection to a Device what leads there, as long as it is asked for.

``python3 -I PATH/edge devices --api URL ...``, with the package kopf, which tells what changes. Several may
run; one leads, and all answer API servers that ask whether an object may be as somebody wants it. A term
ends when the lease could not be renewed in time; all is listed anew in the next, and every two minutes.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

from edge import leader, watch
from edge.access import Access, access_of, add_options, work_with
from edge.devices.admission import Judge
from edge.devices.kinds import PREFIX
from edge.devices.liveness import Liveness
from edge.devices.picture import CHOSEN, KINDS, Picture
from edge.devices.reconciling import Queue, Reconciler
from edge.devices.rendering import Settings
from edge.http import AwayError, Json, Server
from edge.leader import Leader, positive
from edge.log import Logger
from edge.watch import Kind, Listed, News
from edge.webhook import PORT, Webhook

LEASE, AT_ONCE = "kube-system/edge-operator", 4
LIST_SECONDS, RETRY_SECONDS, TICK_SECONDS = 120.0, 1.0, 0.5


class Options(NamedTuple):
    """What the program is told when it is started."""

    access: Access
    lease: str
    lease_seconds: int
    labels: dict[str, str]
    strict: bool
    settings: Settings
    webhook: str
    webhook_port: int

    def server(self) -> Server:
        """Return the API. Raises AccessError."""
        return self.access.server(AT_ONCE + 4)


def main(arguments: Sequence[str]) -> int:
    """Run until a signal ends it: 0; or return 2 for options that cannot be."""
    log = Logger(sys.stderr)
    options = parse(arguments)

    def work(server: Server, stop: threading.Event) -> int:
        judge = Judge(server, options.labels, options.strict, log)
        with Webhook(options.webhook, options.webhook_port, server, judge.answer, log).running(stop):
            leader.lead(
                server,
                options.lease,
                options.lease_seconds,
                lambda held: Term(options, held, log).run(stop),
                stop,
                log,
            )
        return 0

    return work_with(options.server, work, log)


class Term:
    """What is done from when a lease is got until it is lost."""

    def __init__(self, options: Options, held: Leader, log: Logger) -> None:
        self._options, self._leader, self._log = options, held, log
        self._server = options.server()
        self._picture, self._queue = Picture(options.labels), Queue()
        self._reconciler = Reconciler(self._server, self._picture, options.settings, held.leads)
        handlers = options.settings.probe_seconds > 0
        self._liveness = Liveness(
            self._server, self._picture, held.leads, log, self._queue.put, handlers=handlers
        )

    def run(self, stop: threading.Event) -> None:
        """Look after all until the lease is lost, or ``stop`` is set."""
        over = threading.Event()
        threads = [threading.Thread(target=self._leader.keep, args=(over,), daemon=True)]
        threads[0].start()
        try:
            # Nothing is made, nor removed, before all is known.
            while not (over.is_set() or stop.is_set() or self._list_all()):
                over.wait(RETRY_SECONDS)
            threads += [threading.Thread(target=self._work, daemon=True) for _ in range(AT_ONCE)]
            threads.append(threading.Thread(target=self._watch, args=(over,), daemon=True))
            threads.append(threading.Thread(target=self._liveness.run, args=(over,), daemon=True))
            threads += [threading.Thread(target=self._follow, args=(kind,), daemon=True) for kind in CHOSEN]
            for thread in threads[1:]:
                thread.start()
            self._list_again(over, stop)
        finally:
            over.set()
            self._queue.close()
            self._server.close()
            for thread in threads:
                if thread.ident is not None:
                    thread.join(self._options.lease_seconds)

    def _list_again(self, over: threading.Event, stop: threading.Event) -> None:
        due = time.monotonic() + LIST_SECONDS
        while not over.wait(TICK_SECONDS) and not stop.is_set():
            if time.monotonic() >= due:
                due = time.monotonic() + (LIST_SECONDS if self._list_all() else RETRY_SECONDS)

    def _list_all(self) -> bool:
        """Take in all that there is; tell whether the API said it."""
        self._picture.begin()
        try:
            for kind in KINDS:
                self._list(kind)
        except AwayError as error:
            self._log.once(str(error))
            return False
        return True

    def _list(self, kind: Kind) -> None:
        found: list[Json] = []

        def take(news: watch.News) -> None:
            if isinstance(news, Listed):
                found.extend(news.objects)

        version = watch.list_all(self._server, kind, take)
        for key in self._picture.replace(kind.path, found, version):
            self._queue.put(key)

    def _watch(self, over: threading.Event) -> None:
        from edge.devices import watching  # kopf is there where this program is to run, and nowhere else

        try:
            watching.watch(self._options.access, KINDS, self._heard, over)
        except Exception as error:  # of any kind: without it nobody hears what changes
            self._log(f"kopf: {error!r}")
        over.set()

    def _heard(self, kind: str, document: Json, gone: bool) -> None:
        for key in self._picture.put(kind, document, gone):
            self._queue.put(key)

    def _follow(self, kind: Kind) -> None:
        watch.follow(self._server, kind, self._take, self._log.once)

    def _take(self, news: News) -> None:
        """Take what is news of a kind that is followed here: no list of it is older than what was heard."""
        if isinstance(news, Listed):
            ours = [one for one in news.objects if _of_proxy(one)]
            concerned = self._picture.replace(news.kind, ours, str(sys.maxsize))
        else:
            ours = [news.document] if _of_proxy(news.document) else []
            concerned = {key for one in ours for key in self._picture.put(news.kind, one, news.gone)}
        for key in concerned:
            self._queue.put(key)

    def _work(self) -> None:
        while (key := self._queue.take()) is not None:
            again = True
            try:
                again = self._reconciler.reconcile(key)
            except AwayError as error:
                self._log.once(f"{key.path}: {error}")
            except Exception as error:  # of any kind: the others are looked after all the same
                self._log.once(f"{key.path}: {error!r}")
            self._queue.done(key, again)


def _of_proxy(document: Json) -> bool:
    """Return whether this is a proxy pod, or an event about what may be one."""
    about = document.get("involvedObject") or document["metadata"]
    return str(about.get("name")).startswith(PREFIX)


def parse(arguments: Sequence[str]) -> Options:
    """Return what arguments say; what cannot be ends the program with status 2 and a word on it."""
    parser = argparse.ArgumentParser(
        prog="edge devices", description="Make for each Connection to a Device what leads there."
    )
    add = parser.add_argument
    add_options(parser)
    leader.add_options(parser, LEASE)
    add(
        "--node-label", metavar="KEY=VALUE", action="append", type=_label,
        help="a label that a node must have to be a gateway; any number of times (edge=true)",
    )  # fmt: skip
    add(
        "--checks", choices=("strict", "warnings"), default="strict",
        help="what is wrong is refused, or taken with a warning (%(default)s)",
    )  # fmt: skip
    add("--pause-image", metavar="IMAGE", required=True, help="what waits in a pod that translates")
    add("--relay-image", metavar="IMAGE", required=True, help="what has socat as its entrypoint")
    add(
        "--probe-seconds", metavar="N", default=2, type=_seconds,
        help="how often a proxy that translates asks its device's first TCP port whether it is ready; never, "
        "nor at other ports, with 0 (%(default)s)",
    )  # fmt: skip
    add(
        "--webhook",
        metavar="NAME",
        default="",
        help="the ValidatingWebhookConfiguration by which API servers ask whether an object may be so",
    )
    add("--webhook-port", metavar="N", default=PORT + 1, type=positive, help="where it answers (%(default)s)")
    told = parser.parse_args(arguments)
    access = access_of(told)
    if not access.url:
        parser.error("--api or --in-cluster must be given")
    settings = Settings(told.pause_image, told.relay_image, told.probe_seconds)
    labels = dict(told.node_label or [("edge", "true")])
    return Options(
        access,
        told.lease,
        told.lease_seconds,
        labels,
        told.checks == "strict",
        settings,
        told.webhook,
        told.webhook_port,
    )


def _label(text: str) -> tuple[str, str]:
    key, mark, value = text.partition("=")
    if not key or not mark:
        raise argparse.ArgumentTypeError(f"{text[:60]!r} is not like edge=true")
    return key, value


def _seconds(text: str) -> int:
    return 0 if text == "0" else positive(text)
