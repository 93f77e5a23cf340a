"""The program: on one node, for one cluster, it lets what is sent to services go to their endpoints.

``/usr/bin/python3 -IS PATH/edge services-proxy --cluster NAME --services CIDR ...``. It follows Services and
EndpointSlices of the cluster's API, or reads them in a file as ``kubectl get -o json`` would write them: a
List. One transaction takes all that came while the one before was written, and at least for
``GATHER_SECONDS``; what comes after a quiet time is written at once.

A proxy that ends leaves its rules, and the next goes on with them; unless its DaemonSet is gone. Where
somebody else serves the cluster's services already, it leaves them to that, and looks now and then. With
``--names`` it keeps the file of services' names, too.
"""

from __future__ import annotations

import argparse
import fcntl
import gc
import os
import queue
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from ipaddress import IPv4Network
from pathlib import Path
from typing import NamedTuple, Union

from edge.access import Access, AccessError, access_of, add_options, path_in
from edge.events import NORMAL, WARNING
from edge.http import Json, Server, json_object
from edge.log import Logger
from edge.services import ending, others, telling
from edge.services.annotations import Version
from edge.services.catalogue import SERVICES, SLICES, Catalogue, Name, Served, Together, Where, needed
from edge.services.discovery import Found, discover
from edge.services.endpoints import ZONE_LABEL
from edge.services.hints import Event
from edge.services.names import Names
from edge.services.node import Node, RulesError, is_bridged, room
from edge.services.rules import Frame
from edge.services.support import UNREADABLE, service_range
from edge.services.telling import FAILED, LEFT_ALONE, SERVED
from edge.signals import when_to_end
from edge.watch import Changed, Kind, Listed, News, follow

NODES = "/api/v1/nodes"
GATHER_SECONDS = 0.05
LOOK_SECONDS = 0.5  # how often it is looked whether the table is there
OTHERS_SECONDS = 5.0  # and how often whether somebody else serves these services
_DEFAULT_VERSION: Version = (1, 20)  # of what is in a file


class Options(NamedTuple):
    """What the program is told when it is started; ``pods`` and ``zone`` may be the Node's to say."""

    cluster: str
    services: IPv4Network
    node: str
    zone: str
    pods: tuple[IPv4Network, ...]
    access: Access
    file: str
    names: str
    leave: bool
    daemon_set: str  # paths in the API
    pod: str


class Wake(NamedTuple):
    """Nothing new, but look."""


Message = Union[Listed, Changed, Found, Wake]


def main(arguments: Sequence[str]) -> int:
    """Run until a signal ends it: 0; or return 2 for options that cannot be, 1 if nft cannot be used."""
    # What is known of services is many small objects in no circle: to look for one takes a third of the time.
    gc.set_threshold(50_000)
    log = Logger(sys.stderr)
    options = parse(arguments)
    if options.leave:
        return leave(options, log)
    stop, inbox = threading.Event(), queue.SimpleQueue[Message]()

    def end() -> None:
        stop.set()
        inbox.put(Wake())

    when_to_end(end)
    if options.file:
        source = File(Path(options.file), log)
        for number in (signal.SIGHUP, signal.SIGIO):
            signal.signal(number, lambda *_: inbox.put(Wake()))
        source.be_told()
        Proxy(options, log).run(stop, inbox, source.look)
        return 0
    try:
        server = options.access.server(kept=4)
    except AccessError as error:
        log(str(error))
        return 2
    try:
        threading.Thread(target=listen, args=(server, options, inbox.put, log), daemon=True).start()
        Proxy(options, log, telling.by_all(server, options.node, options.pod, log)).run(stop, inbox)
        if options.daemon_set and ending.is_for_good(server, options.daemon_set):
            log("its DaemonSet is gone: so are the rules")
            return leave(options, log)
    finally:
        server.close()
    return 0


class Proxy:
    """Takes what is said of services, and keeps the node's rules as that justifies."""

    def __init__(self, options: Options, log: Logger, tell: Callable[[Event], None] = lambda _: None) -> None:
        self._options, self._log, self._teller = options, log, tell
        self.where = Where(options.services, options.node, options.zone, _DEFAULT_VERSION)
        self._pods, self._room = options.pods, 0
        self._catalogue, self._together = Catalogue(self.where, log.once), Together(log.once)
        self._node = Node(self.frame, log)
        self._names = Names(options.names)
        self._told = Event("", "", "")
        self._left: dict[Name, tuple[str, ...]] = {}  # what was logged of services
        self._pending, self._written = True, False
        self._left_to = ""  # who else serves these services
        self._node_known = not (options.access.url and options.node)

    def run(
        self,
        stop: threading.Event,
        inbox: queue.SimpleQueue[Message],
        look: Callable[[], Iterable[News]] = tuple,
    ) -> None:
        """Go on until ``stop`` is set; ``look`` says what is new that nobody puts into the inbox."""
        self._room = room(self._log)
        self._node.frame = self.frame
        written = looked = 0.0
        around = -OTHERS_SECONDS
        while not stop.is_set():
            with suppress(queue.Empty):
                self.take(inbox.get(timeout=self._rest(written)))
                while True:
                    self.take(inbox.get_nowait())
            for news in look():
                self.take(news)
            now = time.monotonic()
            try:
                if now - around >= OTHERS_SECONDS:
                    self._look_around()
                    around = now
                if now - looked >= LOOK_SECONDS:
                    looked = now
                    self._write_names()
                    self._pending |= not self._node.look()
                if self._node.again and now >= self._node.again:
                    self._node.look_again()
                if self.frame != self._node.frame:
                    self._node.frame, self._pending = self.frame, True
                if self._pending and self._ready() and now - written >= GATHER_SECONDS:
                    written = time.monotonic()
                    self._write()
            except Exception as error:  # of any kind: who ended would serve nothing new
                problem = str(error) if isinstance(error, (RulesError, OSError)) else repr(error)
                self._log.once(f"tried again: {problem}")
                self._tell(Event(WARNING, FAILED, problem))
                self._pending = True
                stop.wait(GATHER_SECONDS)

    def _rest(self, written: float) -> float:
        """Return how long there is nothing to do unless somebody says something (seconds)."""
        due = [LOOK_SECONDS]
        if self._pending and self._ready():
            due.append(written + GATHER_SECONDS - time.monotonic())
        if self._node.again:
            due.append(self._node.again - time.monotonic())
        return max(0.0, min(due))

    def _ready(self) -> bool:
        return self._catalogue.complete and self._node_known and not self._left_to

    def _look_around(self) -> None:
        """Leave services to whoever else serves them here, as long as it does. Raises RulesError, OSError."""
        found = others.serving(self._options.services, self.frame.table)
        if found and found != self._left_to:
            self._node.remove()
            text = f"{found} serves {self._options.services} on this node: services are left to it"
            self._log(text)
            self._tell(Event(WARNING, LEFT_ALONE, text))
        self._pending |= found != self._left_to
        self._left_to = found

    def _tell(self, event: Event) -> None:
        """Say what is so on this node, unless it was said last."""
        if event != self._told:
            self._told = event
            self._teller(event)

    @property
    def frame(self) -> Frame:
        """What does not change with services, as far as it is known."""
        return Frame(self._options.cluster, self._options.services, self._pods, is_bridged(), self._room)

    def take(self, message: Message) -> None:
        """Take into account what is said; nothing is written yet."""
        if isinstance(message, Wake):
            return
        if isinstance(message, Found):
            self.where = self.where._replace(version=message.version)
        elif message.kind == NODES:
            self._take_node(message)
        else:
            self._catalogue.take(message)
            self._names.take(message)
        self._catalogue.be(self.where)
        self._pending = True

    def _take_node(self, news: News) -> None:
        """Take zone and pod networks from the own Node, unless they were given."""
        self._node_known = True
        for document in news.objects if isinstance(news, Listed) else [news.document]:
            try:
                zone, pods = _place(document)
            except UNREADABLE as error:
                self._log.once(f"node {self._options.node}: cannot be read, and is as it was: {error!r}")
                continue
            if not self._options.zone:
                self.where = self.where._replace(zone=zone)
            if not self._options.pods:
                self._pods = pods

    def _write(self) -> None:
        """Write what follows from all that was said. Raises RulesError and OSError."""
        begin = time.monotonic()
        changes, together = self._catalogue.changes(), self._together
        together.take(changes)
        self._log_left(changes)
        changed = self._node.apply(together.ports, together.servers, together.touched)
        together.settled()
        self._write_names()
        self._pending = False
        if changed or not self._written:
            took = time.monotonic() - begin
            self._log(
                f"{len(together.ports)} ports of services and {len(together.servers)} of servers, "
                f"in {took * 1000:.0f} ms"
            )
            self._written = True
        self._tell(Event(NORMAL, SERVED, f"services of {self._options.services} are served on this node"))

    def _write_names(self) -> None:
        """Write names, once all are known. What cannot be written is tried again, and holds up no rules."""
        try:
            if self._catalogue.complete:
                self._names.write()
        except OSError as error:
            self._log.once(f"names of services are not written: {error}")

    def _log_left(self, changes: Mapping[Name, Served]) -> None:
        """Log what is not done for services, once; who publishes hints says it by event."""
        for name, one in changes.items():
            if self._left.pop(name, ()) != one.left:
                for text in one.left:
                    self._log(f"service {'/'.join(name)}: {text}")
            if one.left:
                self._left[name] = one.left


class File:
    """Services and EndpointSlices in a file, as an API would list them; it is to be put in place whole."""

    def __init__(self, path: Path, log: Logger) -> None:
        self._path, self._log = path, log
        self._seen: object = None

    def be_told(self) -> None:
        """Let SIGIO say when something happens beside the file, as far as its file system can (fcntl(2))."""
        happens = fcntl.DN_CREATE | fcntl.DN_RENAME | fcntl.DN_MODIFY | fcntl.DN_MULTISHOT
        try:
            # It lasts as long as the directory is open: as the program does.
            fcntl.fcntl(os.open(self._path.parent, os.O_RDONLY | os.O_CLOEXEC), fcntl.F_NOTIFY, happens)
        except OSError as error:
            self._log(f"{self._path.parent}: {error}: looked at every {LOOK_SECONDS:g} s")

    def look(self) -> list[News]:
        """Return all that is in the file, if it is another than before; what cannot be read is said once."""
        try:
            status = self._path.stat()
            seen = (status.st_mtime_ns, status.st_ino, status.st_size)
            if seen == self._seen:
                return []
            self._seen = seen
            return listed(json_object(self._path.read_text(encoding="utf-8"), "the content"))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            self._log.once(f"{self._path}: {error}: what was there before still holds")
            return []


def listed(document: Json) -> list[News]:
    """Return what a List of Services and EndpointSlices says. Raises ValueError, KeyError or TypeError."""
    found: dict[str, list[Json]] = {"Service": [], "EndpointSlice": []}
    for number, one in enumerate(document["items"]):
        if one.get("kind") not in found:
            raise ValueError(f"items[{number}].kind: must be {' or '.join(found)}")
        if not (one.get("metadata") or {}).get("name"):
            raise ValueError(f"items[{number}].metadata.name: required")
        found[one["kind"]].append(one)
    return [Listed(SERVICES, found["Service"]), Listed(SLICES[0], found["EndpointSlice"])]


def listen(server: Server, options: Options, put: Callable[[Message], None], log: Logger) -> None:
    """Follow all that is to be known, once it is known which Kubernetes it is."""
    found = discover(server, log.once)
    if found is None:
        return
    log(f"Kubernetes {found.version[0]}.{found.version[1]}: {found.slices}")
    put(found)
    kinds = [Kind(SERVICES, needed), Kind(found.slices, needed)]
    if options.node:
        kinds.append(Kind(NODES, _own, fields=f"metadata.name={options.node}"))
    for kind in kinds:
        threading.Thread(target=follow, args=(server, kind, put, log), daemon=True).start()


def _place(node: Json) -> tuple[str, tuple[IPv4Network, ...]]:
    """Return a Node's zone, and the networks of its pods. Raises what UNREADABLE has."""
    spec, labels = node.get("spec") or {}, node["metadata"].get("labels") or {}
    blocks = spec.get("podCIDRs") or [one for one in [spec.get("podCIDR")] if one]
    pods = tuple(IPv4Network(one, strict=False) for one in blocks if ":" not in one)
    return str(labels.get(ZONE_LABEL) or ""), pods


def _own(node: Json) -> Json:
    metadata, spec = node["metadata"], node.get("spec") or {}
    return {
        "metadata": {key: metadata[key] for key in ("name", "labels") if key in metadata},
        "spec": {key: spec[key] for key in ("podCIDR", "podCIDRs") if key in spec},
    }


def leave(options: Options, log: Logger) -> int:
    """Take a cluster's table and names from the node: 0, or 1 if that cannot be."""
    try:
        Node(Frame(options.cluster, options.services), log).remove()
        Names(options.names).remove()
    except (RulesError, OSError) as error:
        log(str(error))
        return 1
    return 0


def parse(arguments: Sequence[str]) -> Options:
    """Return what arguments say; what cannot be ends the program with status 2 and a word on it."""
    parser = argparse.ArgumentParser(
        prog="edge services-proxy",
        description="Let what this node's pods send to a cluster's services go to their endpoints.",
    )
    add = parser.add_argument
    add("--cluster", metavar="NAME", required=True, type=_cluster, help="names the table: services-NAME")
    add("--services", metavar="CIDR", required=True, type=service_range, help="the cluster's services' range")
    add("--node", metavar="NAME", default="", help="this node, as the cluster calls it")
    add("--zone", metavar="NAME", default="", help="this node's zone, unless the API is to say it")
    add(
        "--pods", metavar="CIDR", action="append", default=[], type=service_range,
        help="the network of this node's own pods, unless the API is to say it; any number of times",
    )  # fmt: skip
    add("--file", metavar="JSON", default="", help="a List of Services and EndpointSlices, instead of an API")
    add("--names", metavar="DIRECTORY", default="", help="where dnsmasq finds the file of services' names")
    add("--leave", action="store_true", help="only take the table and the names away")
    add(
        "--daemon-set", metavar="NAMESPACE/NAME", type=ending.daemon_set,
        help="by what it runs: if that is gone when this is told to end, the table goes, too",
    )  # fmt: skip
    add(
        "--pod", metavar="NAMESPACE/NAME", type=path_in("/api/v1", "pods"),
        help="in which it runs, to be ready once services are served: by the gate " + telling.GATE,
    )  # fmt: skip
    add_options(parser)
    told = parser.parse_args(arguments)
    access = access_of(told)
    if not told.leave and bool(access.url) == bool(told.file):
        parser.error("--api, --in-cluster or --file: one of them must say where services are")
    return Options(
        told.cluster, told.services, told.node, told.zone, tuple(told.pods),
        access, told.file, told.names, told.leave, told.daemon_set or "", told.pod or "",
    )  # fmt: skip


def _cluster(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", text):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no name of letters, digits, '.', '_' and '-'")
    return text
