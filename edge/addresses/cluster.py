"""What a cluster's API says of nodes and configs, and what is written to it.

Nothing is written to objects that are not ours but a node's ``podCIDR`` and ``podCIDRs``, which all this is
about.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from typing import Union
from urllib.parse import urlencode

from edge.addresses import kinds
from edge.addresses.arrivals import written_blocks
from edge.addresses.books import Changed, Gift, Held, Listed, Outcome
from edge.http import MERGE, STRATEGIC, AwayError, Json, Question, RefusedError, Server

NODES = "/api/v1/nodes"
CONFIGS = tuple(f"/apis/{group}/{kinds.PLURAL}" for group in (kinds.OURS, kinds.VENDOR))
KINDS = (NODES, *CONFIGS)
PAGE = 250  # objects of a list that are asked for at once
LIST_SECONDS = 30.0
# A server says a bookmark about each minute; one that is silent for longer is gone.
SILENCE_SECONDS, WATCH_SECONDS = 90.0, 300
FIRST_WAIT, LAST_WAIT = 0.05, 1.0
ABSENT_SECONDS = 1.0  # how often it is looked whether a kind is there now
NEEDED = ("name", "uid", "labels", "creationTimestamp", "deletionTimestamp")
COMPONENT = "concorde-addresses"
News = Union[Listed, Changed]


class Cluster:
    """A cluster by its API; ``seconds`` is how long giving a block may take, at most."""

    def __init__(self, server: Server, seconds: float) -> None:
        self._server = server
        self._seconds = seconds / 2  # to be connected, and to be answered
        self._keeps_both = threading.Event()
        self._counts: dict[str, int] = {}  # of events that were written

    def follow(self, kind: str, put: Callable[[News], None], log: Callable[[str], None]) -> None:
        """Say all objects of a kind, and what changes, until the server's connections are closed."""
        wait, version, away = FIRST_WAIT, "", False
        while not self._server.closed:
            try:
                if not version:
                    version = self._list(kind, put)
                if version:
                    version = self._watch(kind, version, put)
                    time.sleep(FIRST_WAIT)
                else:
                    time.sleep(ABSENT_SECONDS)
                if away:
                    log(f"{kind}: the API is back")
                wait, away = FIRST_WAIT, False
            except Exception as error:  # of any kind: a thread that ended would let what is known grow old
                problem = str(error) if isinstance(error, AwayError) else repr(error)
                if not away and not self._server.closed:
                    log(f"{kind}: cannot be followed, and is listed again: {problem}")
                version, away = "", True
                time.sleep(wait)
                wait = min(2 * wait, LAST_WAIT)

    def _list(self, kind: str, put: Callable[[News], None]) -> str:
        """Say all objects; return the version of the list, or nothing if there is no such kind."""
        found: list[Json] = []
        more: dict[str, str] = {}
        while True:
            asked = urlencode({"limit": PAGE, **more})
            try:
                answer = self._server.ask(Question("GET", f"{kind}?{asked}", seconds=LIST_SECONDS))
            except RefusedError as error:
                if error.status != 404 or kind == NODES:
                    raise
                put(Listed(kind, []))
                return ""
            found += [_needed(kind, one) for one in answer.get("items") or ()]
            token = answer["metadata"].get("continue")
            if not token:
                put(Listed(kind, found))
                return str(answer["metadata"]["resourceVersion"])
            more = {"continue": token}

    def _watch(self, kind: str, version: str, put: Callable[[News], None]) -> str:
        """Say what changes until the watch ends; return from which version on it goes on, or nothing."""
        asked = urlencode(
            {
                "watch": 1,
                "resourceVersion": version,
                "allowWatchBookmarks": "true",
                "timeoutSeconds": WATCH_SECONDS,
            }
        )
        for event in self._server.listen(Question("GET", f"{kind}?{asked}"), SILENCE_SECONDS):
            what, document = event["type"], event["object"]
            if what not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
                return ""  # what changed since is not known any more
            version = str(document["metadata"]["resourceVersion"])
            if what != "BOOKMARK":
                put(Changed(kind, _needed(kind, document), what == "DELETED"))
        return version

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
            self._list(kind, found.append)
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
        try:
            self._server.ask(question)
        except RefusedError as error:
            if error.status not in (404, 409):
                raise
            return False
        return True

    def event(self, about: Json, reason: str, message: str) -> None:
        """Write an event about an object, or bring up to date the one before. Raises AwayError."""
        namespace = about.get("namespace") or "default"
        events = f"/api/v1/namespaces/{namespace}/events"
        digest = hashlib.sha256(f"{about['kind']} {about['uid']} {reason}".encode()).hexdigest()[:16]
        name = f"{about['name'][:230]}.{digest}"
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        news = {"message": message[:1024], "lastTimestamp": now}
        if name in self._counts:
            body = {**news, "count": self._counts[name] + 1}
            if self._written(Question("PATCH", f"{events}/{name}", body, MERGE)):
                self._counts[name] += 1
                return
        made = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": about,
            "reason": reason,
            "type": "Warning",
            "source": {"component": COMPONENT},
            "firstTimestamp": now,
            "count": 1,
            **news,
        }
        if not self._written(Question("POST", events, made)):
            self._server.ask(Question("PATCH", f"{events}/{name}", news, MERGE))
        self._counts[name] = self._counts.get(name, 0) + 1


def _needed(kind: str, document: Json) -> Json:
    """Return what is needed of an object: a Node's images and conditions are the most of it by far."""
    if kind != NODES:
        return document
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
