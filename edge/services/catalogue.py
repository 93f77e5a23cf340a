"""What services there are, and where a node's connections to them may go; pure.

It is told what an API says of Services and EndpointSlices, or of objects that somebody else wrote as an API
would, and says what is to be in the node's rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from ipaddress import IPv4Address, IPv4Network
from typing import Any, NamedTuple, Optional

from edge.http import Json
from edge.services.annotations import ZONE_HINTS, Version, wish, with_hints
from edge.services.endpoints import Endpoint, Slice, slice_of
from edge.services.hints import OFF
from edge.services.rules import MOST_ENDPOINTS, Port, Target
from edge.services.selection import choose, distinct, policies_of
from edge.services.support import PROTOCOLS, UNREADABLE, a_string, require_port, supported
from edge.watch import Listed, News

SERVICES = "/api/v1/services"
SLICES = tuple(f"/apis/discovery.k8s.io/{version}/endpointslices" for version in ("v1", "v1beta1"))
SERVICE_OF = "kubernetes.io/service-name"  # of a slice

Name = tuple[str, str]  # namespace and name


class Where(NamedTuple):
    """The cluster's range of services, the node whose rules are asked for, its zone, and which Kubernetes."""

    services: IPv4Network
    node: str = ""
    zone: str = ""
    version: Version = (1, 20)


class Backends(NamedTuple):
    """Where new connections to a port may go, and to which endpoints flows may go that have begun."""

    chosen: frozenset[Target]
    alive: frozenset[Target]


class Served(NamedTuple):
    """What is done for a service: its ports, all servers behind them; and what is not, and so is said."""

    ports: Mapping[Port, Backends]
    servers: frozenset[Port]
    left: tuple[str, ...] = ()


class Touched(NamedTuple):
    """Ports of services and of servers of which something may be other than before."""

    ports: set[Port]
    servers: set[Port]


class _Sliced(NamedTuple):
    """A slice, its ports' numbers by name and protocol, and its hints where they are an annotation."""

    of: Name
    ports: Mapping[tuple[str, str], int]
    endpoints: Slice
    hints: Optional[str]  # noqa: UP045 (nodes may have Python 3.9)


_NOTHING = Served({}, frozenset())


class Together:
    """What all services have together: the ports of all, and the servers behind any.

    ``touched`` is what changed since it was last said to be ``settled``.
    """

    def __init__(self, log: Callable[[str], None] = lambda _: None) -> None:
        self.ports: dict[Port, Backends] = {}
        self.servers: Counter[Port] = Counter()  # by how many services have them
        self.touched = Touched(set(), set())
        self._log = log
        self._services: dict[Name, Served] = {}
        self._having: dict[Port, set[Name]] = {}

    def take(self, changes: Mapping[Name, Served]) -> None:
        """Take into account what is done for some services now."""
        for name, after in changes.items():
            before = self._services.get(name, _NOTHING)
            self._services[name] = after
            for port in before.ports:
                self._having[port].discard(name)
            for port in after.ports:
                self._having.setdefault(port, set()).add(name)
            ports = before.ports.keys() | after.ports.keys()
            self.touched.ports.update(ports)
            for port in ports:
                self._assign(port)
            self._count(before.servers, after.servers)
            if after is _NOTHING:
                del self._services[name]

    def settled(self) -> None:
        """Say that all that was touched is as it is to be."""
        self.touched = Touched(set(), set())

    def _assign(self, port: Port) -> None:
        """Let a port be of the service that has it, the last by name if several have."""
        names = self._having[port]
        if not names:
            del self._having[port], self.ports[port]
            return
        if len(names) > 1:
            self._log(f"service {'/'.join(max(names))}: {port} is another service's, too")
        self.ports[port] = self._services[max(names)].ports[port]

    def _count(self, before: frozenset[Port], after: frozenset[Port]) -> None:
        self.servers.update(after - before)
        self.servers.subtract(before - after)
        for server in before - after:
            if not self.servers[server]:
                del self.servers[server]
        self.touched.servers.update(before ^ after)


class Catalogue:
    """Services of a cluster, as one node sees them. Only what changed is worked out again."""

    def __init__(self, where: Where, log: Callable[[str], None] = lambda _: None) -> None:
        self._where, self._log = where, log
        self._services: dict[Name, Json] = {}
        self._slices: dict[Name, _Sliced] = {}
        self._by_service: dict[Name, set[Name]] = {}
        self._missing = {"services", "endpointslices"}  # what was not listed yet
        self._dirty: set[Name] = set()

    @property
    def complete(self) -> bool:
        """Whether all there is was listed once."""
        return not self._missing

    def be(self, where: Where) -> None:
        """Say from now on what is so somewhere else: the node's zone may have changed."""
        if where != self._where:
            self._where = where
            self._dirty.update(self._services)

    def take(self, news: News) -> None:
        """Take into account what is said of services or slices."""
        plural = news.kind.rpartition("/")[2]
        if isinstance(news, Listed):
            self._missing.discard(plural)
        if plural == "endpointslices":
            pass_on(news, self._slices, self._slice, self._log)
        else:
            pass_on(news, self._services, self._service, self._log)

    def changes(self) -> dict[Name, Served]:
        """Return what is done for each service that may have changed since this was last asked."""
        changed = {name: self._serve(name) for name in self._dirty}
        self._dirty.clear()
        return changed

    def _serve(self, name: Name) -> Served:
        document = self._services.get(name)
        if document is None:
            return _NOTHING
        slices = [self._slices[one] for one in sorted(self._by_service.get(name, ()))]
        try:
            return serve(document, slices, self._where)
        except UNREADABLE as error:
            return _NOTHING._replace(left=(f"cannot be read ({error!r}): the service is left alone",))

    def _service(self, name: Name, document: Optional[Json]) -> None:  # noqa: UP045
        if document is None:
            self._services.pop(name, None)
        else:
            self._services[name] = document
        self._dirty.add(name)

    def _slice(self, name: Name, document: Optional[Json]) -> None:  # noqa: UP045
        before = self._slices.pop(name, None)
        if before is not None:
            self._by_service[before.of].discard(name)
            self._dirty.add(before.of)
        after = None if document is None else self._read(name, document)
        if after is not None:
            self._slices[name] = after
            self._by_service.setdefault(after.of, set()).add(name)
            self._dirty.add(after.of)

    def _read(self, name: Name, document: Json) -> Optional[_Sliced]:  # noqa: UP045
        try:
            return _sliced(document)
        except UNREADABLE as error:
            self._log(f"slice {'/'.join(name)}: cannot be read, and is left alone: {error!r}")
            return None


def needed(document: Json) -> Json:
    """Return of a Service or a slice what is needed of it: who wrote which field may be the most of it."""
    metadata = {key: value for key, value in document["metadata"].items() if key != "managedFields"}
    return {**document, "metadata": metadata}


def serve(service: Json, slices: Iterable[_Sliced], where: Where) -> Served:
    """Return what is done for a service with such slices on a node."""
    found = supported(service, where.services)
    if not found.address:
        return _NOTHING._replace(left=found.left)
    spec = service.get("spec") or {}
    asked = wish(service, where.version)
    known = [
        one if asked.built_in else one._replace(endpoints=with_hints(one.endpoints, one.hints)[0])
        for one in slices
    ]
    ports: dict[Port, Backends] = {}
    servers: set[Port] = set()
    policies = policies_of(service)
    left = list(found.left)
    for port in spec.get("ports") or ():
        protocol = PROTOCOLS.get(port.get("protocol") or "TCP")
        if protocol is None:
            continue
        numbers, endpoints = _behind(known, (port.get("name") or "", port.get("protocol") or "TCP"))
        chosen = choose(endpoints, where.zone, asked.mode != OFF, where.node, policies).endpoints
        alive = [one for one in endpoints if one.ready is not False]
        if len(chosen) > MOST_ENDPOINTS:
            left.append(
                f"port {port['port']}: only the first {MOST_ENDPOINTS} of {len(chosen)} endpoints are used"
            )
        ports[Port(found.address, protocol, int(port["port"]))] = Backends(
            frozenset(Target(one.address, numbers[one.address]) for one in chosen[:MOST_ENDPOINTS]),
            frozenset(Target(one.address, numbers[one.address]) for one in (*chosen, *alive)),
        )
        servers.update(Port(one, protocol, number) for one, number in numbers.items())
    return Served(ports, frozenset(servers), tuple(left))


def _behind(slices: Iterable[_Sliced], port: tuple[str, str]) -> tuple[dict[str, int], tuple[Endpoint, ...]]:
    """Return the endpoints of a port, and which number of theirs it is: named ports may differ."""
    having = [one for one in slices if port in one.ports]
    endpoints = distinct(one.endpoints for one in having)
    numbers: dict[str, int] = {}
    for one in having:
        for each in one.endpoints.endpoints:
            numbers.setdefault(each.address, one.ports[port])
    return numbers, endpoints


def reference(service: Mapping[str, Any]) -> Json:
    """Return what an event says a service is."""
    metadata = service["metadata"]
    about = {key: metadata[key] for key in ("name", "namespace", "uid") if metadata.get(key)}
    return {"apiVersion": "v1", "kind": "Service", **about}


def name_of(document: Mapping[str, Any]) -> Name:
    """Return how an object is told from others of its kind. Raises what UNREADABLE has if by nothing."""
    metadata = document["metadata"]
    namespace, name = metadata.get("namespace") or "default", metadata["name"]
    if not isinstance(namespace, str) or not isinstance(name, str):
        raise TypeError("metadata.namespace and metadata.name: must be strings")
    return namespace, name


Change = Callable[[Name, Optional[Json]], None]  # what an object is now, or that it is gone


def pass_on(news: News, known: Mapping[Name, object], change: Change, log: Callable[[str], None]) -> None:
    """Say of each object what it is now, and of those known that a list does not have that they are gone."""
    objects: dict[Name, Json] = {}
    for document in news.objects if isinstance(news, Listed) else [news.document]:
        try:
            objects[name_of(document)] = document
        except UNREADABLE as error:
            log(f"{news.kind}: what has no name is left alone: {error!r}")
    if isinstance(news, Listed):
        for name in known.keys() - objects.keys():
            change(name, None)
    gone = not isinstance(news, Listed) and news.gone
    for name, document in objects.items():
        change(name, None if gone else document)


def _sliced(document: Json) -> Optional[_Sliced]:  # noqa: UP045
    """Return what a slice says, unless it is of no service, or not of IPv4."""
    metadata = document["metadata"]
    service = a_string((metadata.get("labels") or {}).get(SERVICE_OF), SERVICE_OF)
    if not service or document.get("addressType", "IPv4") != "IPv4":
        return None
    ports = {
        (one.get("name") or "", one.get("protocol") or "TCP"): int(one["port"])
        for one in document.get("ports") or ()
        if one.get("port")
    }
    endpoints = slice_of(document)
    for number in ports.values():
        require_port(number)
    for one in endpoints.endpoints:
        IPv4Address(one.address)
    hints = a_string((metadata.get("annotations") or {}).get(ZONE_HINTS), ZONE_HINTS)
    return _Sliced((name_of(document)[0], service), ports, endpoints, hints)
