"""The programs: one answers a VXLAN device's misses on one node, for one overlay; one ends what that began.

``/usr/bin/python3 -IS PATH/edge resolver SETTINGS.json``. It tells a store which subnet this node has, learns
from it which the others have, and goes on for ever. Two threads: this one hears the kernel and alone changes
anything there, the other asks the store, which may take its time or be away.
"""

from __future__ import annotations

import os
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from edge.http import AwayError, Server
from edge.log import Logger
from edge.overlay import etcd
from edge.overlay.answering import MISS, Answering, DeviceGoneError, Replica
from edge.overlay.kernel import Device, Ears, OverrunError
from edge.overlay.leases import Lease, Store, report
from edge.overlay.node_annotations import Annotations
from edge.overlay.settings import ANSWER, Settings, of_arguments

# A store that is away is asked again after the first, then twice as long each time, up to the last, seconds.
FIRST_WAIT, LAST_WAIT = 0.05, 1.0
# Between two questions, if the store's answers end at once.
BREATH_SECONDS = 0.02
# How often the kernel's entries are looked at though nothing has happened, and soon when a change failed.
LOOK_SECONDS, SOON_SECONDS = 30.0, 0.5


class Mailbox:
    """The last leases that were learned, handed from one thread to the other."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._last: deque[Sequence[Lease]] = deque(maxlen=1)

    def fileno(self) -> int:
        """Return what is readable when there is something to take."""
        return self._reader

    def put(self, leases: Sequence[Lease]) -> None:
        """Leave leases; those before, if nobody took them, are not news any more."""
        self._last.append(leases)
        with suppress(BlockingIOError):  # it is full of reasons to look already
            os.write(self._writer, b".")

    def take(self) -> Sequence[Lease] | None:
        """Return the last leases, if there are any that nobody took."""
        with suppress(BlockingIOError):
            os.read(self._reader, 65536)
        return self._last.popleft() if self._last else None


def main(arguments: Sequence[str]) -> int:
    """Run until the device is gone: 1; or return 2 for settings that cannot be."""
    log = Logger(sys.stderr)
    try:
        settings = of_arguments("resolver", arguments)
        device = Device(settings.device)
        own = Lease(settings.subnet, settings.address, device.mac)
        store = store_of(settings, own, log)
    except ValueError as error:
        log(str(error))
        return 2
    except OSError as error:
        log(f"cannot begin: {error}")
        return 1
    mailbox, ears = Mailbox(), Ears(settings.buffer, misses=MISS in settings.generation)
    replica = Replica(settings.network, own)
    answering = Answering(device, replica, settings.generation, settings.refresh == ANSWER, log)
    log(f"{settings.subnet} is this node's, by {own.mac} on {settings.device}; l2: {settings.generation.l2}, "
        f"l3: {settings.generation.l3}, refresh: {settings.refresh}")  # fmt: skip
    threading.Thread(target=_follow, args=(store, mailbox, log), daemon=True).start()
    try:
        answer(ears, mailbox, answering, Path(settings.report) if settings.report else None, log)
    except (DeviceGoneError, OSError) as error:
        log(str(error))
        return 1


def store_of(settings: Settings, own: Lease, log: Logger) -> Store:
    """Return the store that settings name. Raises ValueError for no URL, OSError for missing files."""
    server = Server(settings.store, settings.identity, settings.authority)
    if settings.node:
        return Annotations(server, own, settings.node, log.once)
    return etcd.Etcd(server, own, settings.network, settings.vni, settings.lifetime, log.once)


def answer(
    ears: Ears, mailbox: Mailbox, answering: Answering, to_report: Path | None, log: Logger
) -> NoReturn:
    """Answer and correct, for ever, and write down what was learned.

    Raises DeviceGoneError, and OSError if the kernel cannot be heard or the report cannot be written.
    """
    if to_report is not None:
        to_report.unlink(missing_ok=True)  # of a resolver before this one
    waiting = select.poll()
    waiting.register(ears, select.POLLIN)
    waiting.register(mailbox, select.POLLIN)
    look_at = time.monotonic() + LOOK_SECONDS
    while True:
        if answering.amiss:
            look_at = min(look_at, time.monotonic() + SOON_SECONDS)
        waiting.poll(max(0.0, look_at - time.monotonic()) * 1000)
        _hear(ears, answering, log)
        leases = mailbox.take()
        if leases is not None:
            answering.learned(leases)
            if to_report is not None:
                report(to_report, leases)
        if time.monotonic() >= look_at:
            answering.correct()
            look_at = time.monotonic() + LOOK_SECONDS


def _hear(ears: Ears, answering: Answering, log: Logger) -> None:
    try:
        for datagram in ears.hear():
            answering.heard(datagram)
    except OverrunError:
        log("the kernel said more than could be heard: looking at what there is")
        answering.correct()


def _follow(store: Store, mailbox: Mailbox, log: Logger) -> NoReturn:
    """Follow the store for ever, and be patient with it."""
    wait, away = FIRST_WAIT, False
    while True:
        try:
            for leases in store.follow():
                mailbox.put(leases)
                if away:
                    log("the store is back")
                wait, away = FIRST_WAIT, False
            time.sleep(BREATH_SECONDS)
        except Exception as error:  # of any kind: a thread that ended would let what was learned grow old
            problem = str(error) if isinstance(error, AwayError) else repr(error)
            if not away:
                log(f"the store is unavailable, what was learned from it still holds: {problem}")
            away = True
            time.sleep(wait)
            wait = min(2 * wait, LAST_WAIT)


def leave(arguments: Sequence[str]) -> int:
    """Take a node's subnet out of the store, for all to see, as the end of its lease would.

    ``/usr/bin/python3 -IS PATH/edge leave SETTINGS.json``, with the settings of the node's resolver, once
    that has ended: it would write its subnet again. From a cluster's API nodes are taken by deleting them.
    Returns 1 if the store does not answer, 2 for settings that cannot be.
    """
    log = Logger(sys.stderr)
    try:
        settings = of_arguments("leave", arguments)
        if settings.node:
            log("nodes leave by the cluster's API: delete the Node")
            return 2
        etcd.remove(Server(settings.store, settings.identity, settings.authority), settings.subnet)
    except ValueError as error:
        log(str(error))
        return 2
    except (AwayError, OSError) as error:
        log(f"the store is unavailable: {error}")
        return 1
    return 0
