"""What a cluster's API says of nodes and configs, and what is written to it.

Nothing is written to objects that are not ours but a node's ``podCIDR`` and ``podCIDRs``, which all this is
about.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from urllib.parse import urlencode

from edge.addresses import kinds
from edge.addresses.arrivals import written_blocks
from edge.addresses.books import Gift, Held, Outcome
from edge.events import Events, written
from edge.http import MERGE, STRATEGIC, AwayError, Json, Question, RefusedError, Server
from edge.watch import Kind, Listed, News, follow, list_all

NODES = "/api/v1/nodes"
CONFIGS = tuple(f"/apis/{group}/{kinds.PLURAL}" for group in (kinds.OURS, kinds.VENDOR))
KINDS = (NODES, *CONFIGS)
NEEDED = ("name", "uid", "labels", "creationTimestamp", "deletionTimestamp")
COMPONENT = "concorde-addresses"


class Cluster:
    """A cluster by its API; ``seconds`` is how long giving a block may take, at most."""

    def __init__(self, server: Server, seconds: float) -> None:
        self._server = server
        self._seconds = seconds / 2  # to be connected, and to be answered
        self._keeps_both = threading.Event()
        self._events = Events(server, COMPONENT)

    def follow(self, kind: str, put: Callable[[News], None], log: Callable[[str], None]) -> None:
        """Say all objects of a kind, and what changes, until the server's connections are closed."""
        follow(self._server, _followed(kind), put, log)

    def forget_families(self) -> None:
        """Ask anew whether the server keeps two families: it may be another one."""
        self._keeps_both.clear()

    def give(self, gift: Gift, may: Callable[[], bool]) -> Outcome:
        """Write a gift, if that is still allowed when it is its turn; or ask what is to be asked."""
        try:
            if gift.asks:
                return self._asked(gift)
            if gift.again and self._is_settled(gift):
                return Outcome(gift, True)
            if not may():
                return Outcome(gift, False)
            if len(gift.blocks) > 1 and not self._keeps_both.is_set():
                # A block that is written cannot be changed any more.
                asked = self._asked(gift)
                if asked.one_family:
                    return asked
            return Outcome(gift, bool(self._patched(gift)))
        except RefusedError as error:
            return Outcome(gift, False, str(error)) if gift.asks else self._refused(gift, str(error))
        except Exception as error:  # of any kind: whatever it was, the gift is to be tried again
            return Outcome(gift, False, str(error) if isinstance(error, AwayError) else repr(error))

    def _asked(self, gift: Gift) -> Outcome:
        """Ask by a dry run whether the server keeps blocks of two families. Raises AwayError."""
        if len(self._patched(gift, dryRun="All")) < len(gift.blocks):
            return Outcome(gift, False, one_family=True)
        self._keeps_both.set()
        return Outcome(gift, True)

    def _refused(self, gift: Gift, problem: str) -> Outcome:
        """Look at a node of which the API refused a change: somebody else may have given it blocks."""
        try:
            settled = self._is_settled(gift)
        except AwayError:
            settled = False
        return Outcome(gift, settled, "" if settled else problem)

    def _is_settled(self, gift: Gift) -> bool:
        """Whether a node has blocks, or is gone. Raises AwayError."""
        try:
            node = self._server.ask(Question("GET", f"{NODES}/{gift.node}"))
        except RefusedError as error:
            if error.status != 404:
                raise
            return True
        return node["metadata"]["uid"] != gift.uid or bool(written_blocks(node))

    def _patched(self, gift: Gift, **more: str) -> list[str]:
        """Patch a node; return what it has then. Raises AwayError."""
        texts = [str(block) for block in gift.blocks]
        body = {"metadata": {"uid": gift.uid}, "spec": {"podCIDR": texts[0], "podCIDRs": texts}}
        # The server gives up when we do: nothing is to be written after the lease is over.
        asked = urlencode({**more, "timeout": f"{round(1000 * self._seconds)}ms"})
        path = f"{NODES}/{gift.node}?{asked}"
        return written_blocks(self._server.ask(Question("PATCH", path, body, STRATEGIC, self._seconds)))

    def configs(self) -> list[Held]:
        """Return all configs that there are. Raises AwayError."""
        found: list[News] = []
        for kind in CONFIGS:
            list_all(self._server, _followed(kind), found.append)
        return [
            Held(listed.kind, document, None)
            for listed in found
            if isinstance(listed, Listed)
            for document in listed.objects
        ]

    def mark(self, held: Held, metadata: Json) -> bool:
        """Change the metadata of a config, unless it is another by now; tell whether. Raises AwayError."""
        body = {"metadata": {**metadata, "resourceVersion": held.document["metadata"]["resourceVersion"]}}
        return self._written(Question("PATCH", _path(held), body, MERGE))

    def tell(self, held: Held, status: Json) -> bool:
        """Write a config's status; tell whether it was there. Raises AwayError."""
        return self._written(Question("PATCH", f"{_path(held)}/status", {"status": status}, MERGE))

    def _written(self, question: Question) -> bool:
        return written(self._server, question)

    def event(self, about: Json, reason: str, message: str) -> None:
        """Write an event about an object, or bring up to date the one before. Raises AwayError."""
        self._events.say(about, reason, message)


def _followed(kind: str) -> Kind:
    """Return how a kind is followed: Nodes are always there, kinds of configs may not be yet."""
    return Kind(kind, _needed) if kind == NODES else Kind(kind, optional=True)


def _needed(document: Json) -> Json:
    """Return what is needed of a Node: its images and conditions are the most of it by far."""
    metadata, spec = document["metadata"], document.get("spec") or {}
    return {
        "metadata": {key: metadata[key] for key in NEEDED if key in metadata},
        "spec": {key: spec[key] for key in ("podCIDR", "podCIDRs") if key in spec},
    }


def _path(held: Held) -> str:
    group, _, plural = held.kind.rpartition("/")
    metadata = held.document["metadata"]
    within = f"{group}/namespaces/{metadata['namespace']}" if metadata.get("namespace") else group
    return f"{within}/{plural}/{metadata['name']}"
