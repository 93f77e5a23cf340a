"""Promises that somebody annotated a running pod with: an agent changes them as `concorde change` does.

It watches the pods of its node. What an annotation says counts once it is another than before: than what was
seen last, and when a watch begins than what the pod's ADD was told; so what `concorde change` gave a pod
stays until somebody writes an annotation. One that is taken away changes nothing. A change that is refused is
noted, as an ADD's is (`refusals`), and not tried again in the same watch until the annotation is another.
"""

from __future__ import annotations

from . import cache, changes, pod_annotations, refusals
from .cni import INVALID_CONFIGURATION, CniError, in_words
from .configuration import bits_per_second, node_directory
from .leases import EGRESS, INGRESS
from .node import ledger
from .tools import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from .configuration import Identity
    from .node.records import Entry, Key

    Pod = dict[str, Any]

# A watch ends after that by itself, and who hears nothing for longer asks again (seconds).
_LASTS, _PATIENCE = 300, 330
_GONE = 410  # the API remembers no longer what has been since


class Watched:
    """The annotations of a node's pods, and what of them is to be done."""

    def __init__(
        self, networks: Sequence[Identity], caches: Sequence[str], say: Callable[[str], None]
    ) -> None:
        """Of pods of these networks; `caches` are the runtimes', or none: the usual. What is done is said."""
        self._networks = {network.name: network for network in networks}
        self._state = networks[0].state
        self._caches = caches
        self._say = say
        self._seen: dict[tuple[Key, str], str] = {}  # by attachment and annotation

    def take(self, pods: Iterable[Pod]) -> None:
        """Change what is promised to pods as their annotations say by now. Raises CniError 107 and 108."""
        book = ledger.opened(node_directory(self._state))
        if book is None:
            return
        said, entries = book.changed(), book.entries()
        book.close()
        keys = {entry.key for entry in entries}
        self._seen = {known: value for known, value in self._seen.items() if known[0] in keys}
        for pod in pods:
            of = pod["metadata"]
            for entry in entries:
                if entry.pod == f"{of['namespace']}/{of['name']}" and entry.network in self._networks:
                    self._change(of, entry, said.get(entry.key, {}))

    def _change(self, of: dict[str, Any], entry: Entry, said: Mapping[str, int | None]) -> None:
        asked = []
        for direction in (EGRESS, INGRESS):
            name, promise = pod_annotations.guarantee(direction), entry.promise(direction)
            value = (of.get("annotations") or {}).get(name)
            if value is None:
                continue
            before = self._seen.get((entry.key, name))
            self._seen[entry.key, name] = value
            is_old = _is(value, said.get(direction, promise)) if before is None else value == before
            if not is_old and not _is(value, promise):
                asked.append(f"{direction}-guarantee.{entry.interface}={value}")
        if asked:
            self._ask(of, entry, asked)

    def _ask(self, of: dict[str, Any], entry: Entry, asked: list[str]) -> None:
        try:
            wanted = changes.Wanted(entry.container, asked)
            said = changes.change(self._state, self._caches or cache.usual(), wanted)
        except (CniError, ValueError, CommandError, OSError) as error:
            code = error.code if isinstance(error, CniError) else INVALID_CONFIGURATION
            words = f"what was promised before stays: {in_words(error)}"
            pod = {"namespace": of["namespace"], "pod": of["name"], "uid": of["uid"]}
            refusals.write(self._networks[entry.network].directory, pod, code, words)
            self._say(f"agent: {entry.who}: {words}")
            return
        for line in said.splitlines():
            self._say(f"changed: {line}")


def _is(value: str, promise: int | None) -> bool:
    """Whether an annotation says what is promised (bits per second)."""
    try:
        return bits_per_second(value) == promise
    except ValueError:
        return False


def follow(account: str, node: str, watched: Watched) -> None:
    """Take the pods of a node, and then what changes of them, for good.

    Raises OSError, ValueError, LookupError and http.client.HTTPException where the API cannot be asked, and
    what Watched.take() raises.
    """
    import json

    path = f"/api/v1/pods?fieldSelector=spec.nodeName%3D{node}"
    version = ""
    while True:
        if not version:
            with refusals.Asked(account, path, _PATIENCE) as answer:
                there = json.loads(answer.read())
            watched.take(there["items"])
            version = there["metadata"]["resourceVersion"]
        since = f"&watch=true&allowWatchBookmarks=true&timeoutSeconds={_LASTS}&resourceVersion={version}"
        with refusals.Asked(account, path + since, _PATIENCE) as answer:
            while version and (line := answer.readline()):
                version = _heard(json.loads(line), watched)


def _heard(event: dict[str, Any], watched: Watched) -> str:
    """Take an event, and return the version to go on from; none if all pods are to be asked for again."""
    kind, of = event["type"], event["object"]
    if kind == "ERROR":
        if of.get("code") == _GONE:
            return ""
        raise ValueError(f"the API says {of.get('message')}")
    if kind in ("ADDED", "MODIFIED"):
        watched.take([of])
    return str(of["metadata"]["resourceVersion"])
