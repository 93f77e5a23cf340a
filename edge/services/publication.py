"""Which slices are to have which hints as their annotation, and what is said of services; pure.

It is told what an API says of Services, EndpointSlices and Nodes. What changes a service's endpoints or wish
lets its hints be allocated anew; what changes nodes, as upstream, only those of services that are overloaded
then, and of ``nearest`` if there are other zones. Slices that the built-in controller has not made are
nobody's here: they are not counted, and nothing is written to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from ipaddress import IPv4Network
from typing import NamedTuple, Optional

from edge.http import Json
from edge.services.annotations import ZONE_HINTS, Version, Wish, annotation_of, wish, with_hints
from edge.services.catalogue import SERVICE_OF, Change, Name, name_of, pass_on, reference
from edge.services.endpoints import Node, Slice, node_of, ready_ones, slice_of
from edge.services.hints import (
    AUTO,
    NEAREST,
    NO_DELAYS,
    OFF,
    STRICT,
    Delays,
    Event,
    allocate,
    event,
    is_overloaded,
)
from edge.services.support import UNREADABLE, a_string, supported
from edge.watch import Listed, News

MANAGED_BY, BUILT_IN = "endpointslice.kubernetes.io/managed-by", "endpointslice-controller.k8s.io"
# Events: what is written of hints, and what of services, and is not done.
IGNORED, NOT_SUPPORTED = "HintsIgnored", "NotSupported"


class Post(NamedTuple):
    """The annotation that a slice is to have, or None for none, if it still is of that version."""

    slice: Name
    version: str
    text: Optional[str]  # noqa: UP045 (nodes may have Python 3.9)


class Task(NamedTuple):
    """What is due for a service: it is said first, twice rather than never if whoever does it is killed."""

    service: Name
    about: Json  # what events say the service is
    events: tuple[Event, ...]
    posts: tuple[Post, ...]


class Known(NamedTuple):
    """A slice without the hints of its field, of which addresses it is, and what its annotation says."""

    of: Name
    kind: str
    endpoints: Slice
    text: Optional[str]  # noqa: UP045
    version: str = ""

    @property
    def hinted(self) -> Slice:
        """The slice with the hints of its annotation."""
        return with_hints(self.endpoints, self.text)[0]


class _Service(NamedTuple):
    about: Json
    wish: Wish
    left: tuple[str, ...]

    @property
    def said(self) -> dict[str, Event]:
        """What is to be said of what is written, by reason."""
        found = {IGNORED: self.wish.said, NOT_SUPPORTED: self.left}
        return {key: Event("Warning", key, "; ".join(texts)) for key, texts in found.items() if texts}

    @property
    def mode(self) -> str:
        """What is for us to do."""
        return OFF if self.wish.built_in else self.wish.mode


class Publication:
    """The hints of a cluster's services. Only what changed is worked out again."""

    def __init__(
        self,
        version: Version,
        delays: Delays = NO_DELAYS,
        log: Callable[[str], None] = lambda _: None,
        services: Optional[IPv4Network] = None,  # noqa: UP045 (nodes may have Python 3.9)
    ) -> None:
        self._version, self._delays, self._log, self._range = version, delays, log, services
        self._services: dict[Name, _Service] = {}
        self._slices: dict[Name, Known] = {}
        self._by_service: dict[Name, set[Name]] = {}
        self._nodes: dict[Name, Node] = {}
        self._before: tuple[Node, ...] = ()  # when nodes were looked at last
        self._kinds: dict[str, tuple[Mapping[Name, object], Change]] = {
            "services": (self._services, self._service),
            "endpointslices": (self._slices, self._slice),
            "nodes": (self._nodes, self._node),
        }
        self._missing = set(self._kinds)  # what was not listed yet
        self._posted: dict[Name, Optional[str]] = {}  # what slices were to have last  # noqa: UP045
        self._said: dict[Name, dict[str, Event]] = {}  # by whose addresses, or by its reason
        self._dirty: dict[Name, None] = {}
        self._busy: set[Name] = set()

    def take(self, news: News) -> None:
        """Take into account what is said of services, slices or nodes."""
        plural = news.kind.rpartition("/")[2]
        if isinstance(news, Listed):
            self._missing.discard(plural)
        pass_on(news, *self._kinds[plural], self._log)

    def tasks(self) -> Iterator[Task]:
        """Yield what is due; of a service nothing more until that is concluded."""
        if self._missing:
            return
        self._look_at_nodes()
        for name in [name for name in self._dirty if name not in self._busy]:
            del self._dirty[name]
            try:
                task = self._task(name)
            except Exception as error:  # of any kind: the other services go on
                self._log(f"service {'/'.join(name)}: left alone: {error!r}")
                continue
            if task.events or task.posts:
                self._busy.add(name)
                yield task

    def conclude(self, task: Task, said: bool = True) -> None:
        """Take into account that a task is over; if its events were not said, they are due again."""
        self._busy.discard(task.service)
        if not said:
            self._said.pop(task.service, None)

    def again(self, service: Name) -> None:
        """Look at a service once more, whatever has changed."""
        self._dirty[service] = None

    def _service(self, name: Name, document: Optional[Json]) -> None:  # noqa: UP045
        before = self._services.pop(name, None)
        if document is None:
            self._said.pop(name, None)
        else:
            try:
                left = supported(document, self._range).left if self._range else ()
                self._services[name] = _Service(reference(document), wish(document, self._version), left)
            except UNREADABLE as error:
                self._log(f"service {'/'.join(name)}: cannot be read, and is left alone: {error!r}")
        if self._services.get(name) != before:
            self.again(name)

    def _slice(self, name: Name, document: Optional[Json]) -> None:  # noqa: UP045
        before = self._slices.pop(name, None)
        after = self._read(name, document) if document is not None else None
        if before is not None:
            self._by_service[before.of].discard(name)
        if after is not None:
            self._slices[name] = after
            self._by_service.setdefault(after.of, set()).add(name)
        else:
            self._posted.pop(name, None)
        if before is not None and after is not None:
            echoed = name in self._posted and after.text == self._posted[name]
            if after[:3] == before[:3] and (echoed or after.text == before.text):
                return
        for one in (before, after):
            if one is not None:
                self.again(one.of)

    def _read(self, name: Name, document: Json) -> Optional[Known]:  # noqa: UP045
        try:
            return known(document)
        except UNREADABLE as error:
            self._log(f"slice {'/'.join(name)}: cannot be read, and is left alone: {error!r}")
            return None

    def _node(self, name: Name, document: Optional[Json]) -> None:  # noqa: UP045
        self._nodes.pop(name, None)
        if document is not None:
            try:
                self._nodes[name] = node_of(document)
            except UNREADABLE as error:
                self._log(f"node {name[1]}: cannot be read, and has no zone: {error!r}")
                self._nodes[name] = Node(name[1])

    def _look_at_nodes(self) -> None:
        """See for which services other nodes make a difference."""
        nodes, before = tuple(node for _, node in sorted(self._nodes.items())), self._before
        if nodes == before:
            return
        self._before = nodes
        moved = {node.zone for node in nodes} != {node.zone for node in before}
        for name, service in self._services.items():
            if name in self._busy or (service.mode == NEAREST and moved) or self._overloaded(name, nodes):
                self.again(name)

    def _overloaded(self, name: Name, nodes: Sequence[Node]) -> bool:
        mode = self._services[name].mode
        return mode in (AUTO, STRICT) and any(
            is_overloaded(
                Counter(zone for one in ready_ones(each.hinted for each in slices) for zone in one.hints),
                nodes,
                exact=mode == STRICT,
            )
            for slices in self._by_kind(name).values()
        )

    def _by_kind(self, name: Name) -> dict[str, list[Known]]:
        """Return a service's slices of each kind of addresses, in their order."""
        found: dict[str, list[Known]] = {}
        for one in sorted(self._by_service.get(name, ())):
            found.setdefault(self._slices[one].kind, []).append(self._slices[one])
        return found

    def _task(self, name: Name) -> Task:
        service = self._services.get(name)
        mode = OFF if service is None else service.mode
        events = {} if service is None else service.said
        posts: list[Post] = []
        for kind, slices in self._by_kind(name).items():
            result = allocate(mode, self._before, [one.hinted for one in slices], self._delays)
            news = event(result, any(one.text for one in slices), kind)
            if news and service is not None and not service.wish.built_in:
                events[kind] = news
            for each, after in zip(slices, result.slices):
                text = annotation_of(after)
                if text != each.text:
                    posts.append(Post((name[0], after.name), each.version, text))
        for post in posts:
            self._posted[post.slice] = post.text
        about = {} if service is None else service.about
        return Task(name, about, self._due(name, mode, events), tuple(posts))

    def _due(self, name: Name, mode: str, events: dict[str, Event]) -> tuple[Event, ...]:
        """Return what was not said before; what does not hold any more may be said again."""
        before = self._said.pop(name, {})
        still = {key: one for key, one in before.items() if key != one.reason and mode != OFF}
        if still or events:
            self._said[name] = {**still, **events}
        return tuple(one for kind, one in events.items() if before.get(kind) != one)


def known(document: Json) -> Optional[Known]:  # noqa: UP045
    """Return what is to be known of a slice that the built-in controller has made; of others nothing."""
    metadata = document["metadata"]
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    service = a_string(labels.get(SERVICE_OF), SERVICE_OF)
    kind = a_string(document.get("addressType"), "addressType") or "IPv4"
    if not service or labels.get(MANAGED_BY) != BUILT_IN or kind == "FQDN":
        return None
    read = slice_of(document)
    endpoints = tuple(one._replace(hints=()) for one in read.endpoints)
    return Known(
        (name_of(document)[0], service),
        kind,
        Slice(read.name, endpoints),
        a_string(annotations.get(ZONE_HINTS), ZONE_HINTS),
        str(metadata.get("resourceVersion", "")),
    )
