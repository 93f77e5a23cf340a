"""What is known of a cluster's devices, connections and all that they depend on, and whom a change concerns.

Pure. Objects come by lists, of which each replaces what was known of a kind, and one by one between them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from edge.devices import kinds
from edge.devices.checks import Node, connection_problems, device_problems, node_of
from edge.devices.kinds import BadObjectError, Connection, Device
from edge.devices.rendering import OF_CONNECTION, SERVING
from edge.fields import Problem
from edge.http import Json
from edge.watch import Kind

DEVICES = f"/apis/{kinds.API}/{kinds.DEVICES}"
CONNECTIONS = f"/apis/{kinds.API}/{kinds.CONNECTIONS}"
DEFINITIONS = "/apis/k8s.cni.cncf.io/v1/network-attachment-definitions"
NODES, SERVICES, DEPLOYMENTS = "/api/v1/nodes", "/api/v1/services", "/apis/apps/v1/deployments"
PODS, EVENTS = "/api/v1/pods", "/api/v1/events"
# Of Deployments and Services those alone that were made for a Connection.
KINDS = (
    Kind(DEVICES),
    Kind(CONNECTIONS),
    Kind(DEFINITIONS, optional=True),
    Kind(NODES),
    Kind(DEPLOYMENTS, labels=OF_CONNECTION),
    Kind(SERVICES, labels=OF_CONNECTION),
)
# Of which a cluster has many, and few of ours: the server chooses them.
CHOSEN = (
    Kind(PODS, labels=OF_CONNECTION),
    Kind(EVENTS, fields="involvedObject.kind=Pod,type=Warning"),
)


class Key(NamedTuple):
    """An object by its kind's path, its namespace, which may be none, and its name."""

    kind: str
    namespace: str
    name: str

    @property
    def path(self) -> str:
        """Where it is in the API."""
        group, _, plural = self.kind.rpartition("/")
        within = f"{group}/namespaces/{self.namespace}" if self.namespace else group
        return f"{within}/{plural}/{self.name}"


def key_of(kind: str, document: Mapping[str, Any]) -> Key:
    """Return the key of an object."""
    metadata = document["metadata"]
    return Key(kind, str(metadata.get("namespace") or ""), str(metadata["name"]))


class Held(NamedTuple):
    """A Device or a Connection as it is written, and what it says, or what is wrong with it by itself."""

    document: Json
    said: Device | Connection | None
    problems: Sequence[Problem] = ()


class Picture:
    """What is known; ``labels`` are those of a node that may be a gateway. Threads may use it at once."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        self._labels, self._lock = labels, threading.RLock()
        self._objects: dict[str, dict[Key, Json]] = {kind.path: {} for kind in (*KINDS, *CHOSEN)}
        self._held: dict[Key, Held] = {}
        self._closed: Mapping[str, frozenset[int]] = {}  # ports that devices do not accept, by their names
        self._gone: set[str] = set()  # uids that were heard to be gone since the last list was asked for

    def replace(self, kind: str, documents: Iterable[Json], version: str) -> set[Key]:
        """Take a list of all objects of a kind; return whom what is news concerns.

        The list may be older than what was heard one by one.
        """
        with self._lock:
            listed = {key_of(kind, one): one for one in documents if _uid(one) not in self._gone}
            concerned: set[Key] = set()
            for key, known in list(self._objects[kind].items()):
                if key not in listed and _version(known) <= int(version or 0):
                    concerned |= self.put(kind, known, True)
            for key, one in listed.items():
                known_one = self._objects[kind].get(key)
                if known_one is None or _version(known_one) < _version(one):
                    concerned |= self.put(kind, one, False)
            return concerned

    def begin(self) -> None:
        """Remember from now on who is gone: lists are about to be asked for."""
        with self._lock:
            self._gone.clear()

    def put(self, kind: str, document: Json, gone: bool) -> set[Key]:
        """Take one object; return whom it concerns. An answer may be older than what was heard since."""
        with self._lock:
            key = key_of(kind, document)
            before = self._objects[kind].get(key)
            if (
                before is not None
                and _uid(before) == _uid(document)
                and _version(before) > _version(document)
            ):
                return set()
            concerned = self._concerned(key, before) if before is not None else set()
            if gone:
                self._gone.add(_uid(document))
                self._objects[kind].pop(key, None)
                self._held.pop(key, None)
            else:
                self._objects[kind][key] = document
                if kind in (DEVICES, CONNECTIONS):
                    self._held[key] = held(kind, document)
            if kind == NODES and before is not None and not gone and node_of(before) == node_of(document):
                return set()  # as it is most of the time: a kubelet says that it is well
            return concerned | self._concerned(key, document)

    def _concerned(self, key: Key, document: Json) -> set[Key]:
        if key.kind == DEVICES:
            address = (document.get("spec") or {}).get("ipAddress")
            alike = {one for one, other in self._objects[DEVICES].items() if _address(other) == address}
            return {key, *alike, *self._connections(lambda one: one.device == key.name)}
        if key.kind == DEFINITIONS:
            return set(self._connections(lambda one: one.definition == (key.namespace, key.name)))
        if key.kind == NODES:
            devices = {one.name: at for at, one in self._devices() if key.name in one.nodes}
            return {*devices.values(), *self._connections(lambda one: one.device in devices)}
        if key.kind == CONNECTIONS:
            return {key, *self._device_of(document)}
        if key.kind == EVENTS:
            pod = self._objects[PODS].get(Key(PODS, key.namespace, document["involvedObject"]["name"]))
            return {_connection_of(pod)} if pod is not None else set()
        if key.kind in (DEPLOYMENTS, SERVICES, PODS):
            return {_connection_of(document)}
        return {key}

    def _device_of(self, connection: Json) -> Iterator[Key]:
        """Yield the device of a connection, if it is there: its status says how connections stand."""
        key = Key(DEVICES, "", str((connection.get("spec") or {}).get("deviceName")))
        if key in self._objects[DEVICES]:
            yield key

    def connections(self, device: str) -> list[tuple[Connection, Json]]:
        """Return the connections to a device, each with its status."""
        with self._lock:
            return [
                (one.said, one.document.get("status") or {})
                for one in self._held.values()
                if isinstance(one.said, Connection) and one.said.device == device
            ]

    def learn_closed(self, closed: Mapping[str, frozenset[int]]) -> set[Key]:
        """Take which ports devices do not accept, by their names; return of whom that is news."""
        with self._lock:
            names = {*self._closed, *closed}
            news = {name for name in names if self._closed.get(name) != closed.get(name)}
            self._closed = dict(closed)
            return {Key(DEVICES, "", name) for name in news}

    def closed(self, device: str) -> frozenset[int]:
        """Return which ports for TCP a device does not accept, as far as is known, while it does others."""
        with self._lock:
            return self._closed.get(device, frozenset())

    def all_connections(self) -> list[tuple[Key, Connection]]:
        """Return all connections that can be understood."""
        with self._lock:
            return [(key, one.said) for key, one in self._held.items() if isinstance(one.said, Connection)]

    def pods(self, connection: Key) -> list[Json]:
        """Return a connection's proxy pods that are not about to end."""
        with self._lock:
            return [
                one
                for one in self._objects[PODS].values()
                if _connection_of(one) == connection and "deletionTimestamp" not in one["metadata"]
            ]

    def ended(self, connection: Key) -> list[Json]:
        """Return a connection's proxy pods that somebody deleted and of which nothing runs any more."""
        with self._lock:
            return [
                one
                for one in self._objects[PODS].values()
                if _connection_of(one) == connection and "deletionTimestamp" in one["metadata"] and over(one)
            ]

    def warning(self, pod: Json) -> Json | None:
        """Return the last event of what is wrong with a pod."""
        with self._lock:
            about = [
                one for one in self._objects[EVENTS].values() if one["involvedObject"].get("uid") == _uid(pod)
            ]
        return max(about, key=lambda one: str(one.get("lastTimestamp") or ""), default=None)

    def _devices(self) -> Iterator[tuple[Key, Device]]:
        for key, one in self._held.items():
            if isinstance(one.said, Device):
                yield key, one.said

    def _connections(self, wanted: Any) -> Iterator[Key]:
        for key, one in self._held.items():
            if isinstance(one.said, Connection) and wanted(one.said):
                yield key

    def held(self, key: Key) -> Held | None:
        """Return a Device or a Connection, if it is there."""
        with self._lock:
            return self._held.get(key)

    def device(self, name: str) -> Device | None:
        """Return what a device says, if it is there and can be used."""
        one = self.held(Key(DEVICES, "", name))
        return one.said if one is not None and isinstance(one.said, Device) else None

    def object(self, key: Key) -> Json | None:
        """Return an object as it was heard of last."""
        with self._lock:
            return self._objects[key.kind].get(key)

    def problems(self, key: Key) -> list[Problem]:
        """Return what is wrong with a Device or a Connection, by itself or else beside the others."""
        with self._lock:
            one = self._held[key]
            if isinstance(one.said, Device):
                others = [other for _, other in self._devices()]
                return list(device_problems(one.said, self._nodes(one.said), self._labels, others))
            if isinstance(one.said, Connection):
                namespace, name = one.said.definition
                definition = self._objects[DEFINITIONS].get(Key(DEFINITIONS, namespace, name))
                return list(connection_problems(one.said, self.device(one.said.device), definition))
            return list(one.problems)

    def _nodes(self, device: Device) -> dict[str, Node]:
        found = {name: self._objects[NODES].get(Key(NODES, "", name)) for name in device.nodes}
        return {name: node_of(one) for name, one in found.items() if one is not None}


def held(kind: str, document: Json) -> Held:
    """Return what is held of a Device or a Connection."""
    parse = kinds.parse_device if kind == DEVICES else kinds.parse_connection
    try:
        return Held(document, parse(document))
    except BadObjectError as error:
        return Held(document, None, error.problems)


def ready(pod: Json) -> bool:
    """Return whether a kubelet says that a pod is."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def over(pod: Json) -> bool:
    """Return whether a kubelet says that all containers of a pod ran, and run no more."""
    states = (pod.get("status") or {}).get("containerStatuses") or ()
    return len(states) == len(pod["spec"]["containers"]) and all(map(_ended, states))


def _ended(container: Json) -> bool:
    """Return whether a container has; of one that it does not find any more a kubelet says that it waits."""
    state, before = container.get("state") or {}, container.get("lastState") or {}
    return "terminated" in state or ("waiting" in state and "terminated" in before)


def serves(pod: Json) -> bool:
    """Return whether requests go to a pod once it is ready."""
    return (pod["metadata"].get("labels") or {}).get(SERVING) == "true"


def _connection_of(document: Json) -> Key:
    """Return the connection for which something was made."""
    metadata = document["metadata"]
    name = (metadata.get("labels") or {}).get(OF_CONNECTION, "")
    return Key(CONNECTIONS, str(metadata.get("namespace") or ""), str(name))


def _address(document: Json) -> object:
    return (document.get("spec") or {}).get("ipAddress")


def _uid(document: Json) -> str:
    return str(document["metadata"].get("uid", ""))


def _version(document: Json) -> int:
    return int(document["metadata"].get("resourceVersion") or 0)
