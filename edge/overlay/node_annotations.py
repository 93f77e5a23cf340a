"""Leases as annotations of Kubernetes' Nodes, as flannel's have been since it has known Kubernetes.

A node's subnet is its ``podCIDR``, and its lease lasts as long as the Node does. What else flannel has to
say stands in four annotations, which each node's own program writes (flannel, ``pkg/subnet/kube``). Needed
are the rights to list and watch nodes, and to patch their status, by which annotations are changed, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import urlencode

from edge.http import AwayError, Json, Question, Server, UnfitError
from edge.overlay import leases
from edge.overlay.leases import Lease

_PREFIX = "flannel.alpha.coreos.com/"
ADDRESS, BACKEND = f"{_PREFIX}public-ip", f"{_PREFIX}backend-type"
DATA, MANAGED = f"{_PREFIX}backend-data", f"{_PREFIX}kube-subnet-manager"
NODES = "/api/v1/nodes"
SILENCE_SECONDS = 30.0  # kubelets write into their nodes more often


class Annotations:
    """The leases of a cluster's nodes; see edge.overlay.leases.Store. ``node`` is the own one's name."""

    def __init__(
        self, server: Server, own: Lease, node: str, complain: Callable[[str], None] = lambda _: None
    ) -> None:
        self._server, self._own, self._node = server, own, node
        self._complain = complain
        self._nodes: dict[str, Lease | None] = {}

    def follow(self) -> Iterator[Sequence[Lease]]:
        """Keep the own annotations, and yield all nodes'; see edge.overlay.leases.Store."""
        version = self._list()
        if self._nodes.get(self._node) != self._own:
            self._announce()
            return  # and asked anew, which shows whether they are there
        yield self._leases()
        asked = urlencode({"watch": "1", "resourceVersion": version, "allowWatchBookmarks": "true"})
        for event in self._server.listen(Question("GET", f"{NODES}?{asked}"), SILENCE_SECONDS):
            before = self._nodes.copy()
            if not self._take(event):
                return  # what changed since is not known any more
            if self._nodes != before:
                yield self._leases()
            if self._nodes.get(self._node) != self._own:
                return

    def _announce(self) -> None:
        patch = {"metadata": {"annotations": of_lease(self._own)}}
        path = f"{NODES}/{self._node}/status"
        self._server.ask(Question("PATCH", path, patch, "application/strategic-merge-patch+json"))

    def _list(self) -> str:
        answer = self._server.ask(Question("GET", NODES))
        self._nodes = {}
        try:
            for node in answer["items"] or ():
                self._nodes[node["metadata"]["name"]] = self._value(node)
            return str(answer["metadata"]["resourceVersion"])
        except (KeyError, TypeError) as error:
            raise AwayError(f"{self._server.url}: not a list of nodes: {error!r}") from None

    def _take(self, event: Json) -> bool:
        """Take one change into account; tell whether it was one."""
        kind, node = event.get("type"), event.get("object")
        if kind == "BOOKMARK":
            return True
        if kind not in ("ADDED", "MODIFIED", "DELETED") or not isinstance(node, dict):
            return False
        try:
            name, lease = node["metadata"]["name"], self._value(node)
        except (KeyError, TypeError) as error:
            raise AwayError(f"{self._server.url}: not a watch event of a node: {error!r}") from None
        if kind == "DELETED":
            self._nodes.pop(name, None)
        elif name not in self._nodes or self._nodes[name] != lease:
            self._nodes.pop(name, None)
            self._nodes[name] = lease
        return True

    def _value(self, node: Any) -> Lease | None:
        written = node["metadata"].get("annotations") or {}
        if BACKEND not in written:
            return None  # its program has not started yet
        try:
            return of_node(node)
        except UnfitError as error:
            self._complain(f"node {node['metadata']['name']!r} has no lease: {error}")
            return None

    def _leases(self) -> list[Lease]:
        return [lease for lease in self._nodes.values() if lease is not None]


def of_node(node: Any) -> Lease:
    """Return what a Node says of its subnet. Raises UnfitError."""
    spec, written = node.get("spec"), node["metadata"].get("annotations")
    if not isinstance(spec, dict) or not isinstance(written, dict):
        raise UnfitError("it has neither subnet nor annotations")
    subnet = leases.parse_subnet(spec.get("podCIDR"))
    return leases.of_parts(subnet, written.get(ADDRESS), written.get(BACKEND), written.get(DATA))


def of_lease(lease: Lease) -> dict[str, str]:
    """Return the annotations that say a lease."""
    return {
        ADDRESS: str(lease.address),
        BACKEND: leases.BACKEND,
        DATA: json.dumps({"VtepMAC": lease.mac}),
        MANAGED: "true",
    }
