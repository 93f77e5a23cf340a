"""Promises that somebody annotated a running pod with: an agent changes them as `concorde change` does.

It watches the pods of its node. What counts is that the annotations are others than those that were followed
last, which the ledger keeps with the promise, or those that ADD was told, which the runtime keeps. So what
`concorde change` gave a pod stays until somebody writes an annotation, whoever ends and begins meanwhile. One
that is taken away promises what ADD would without it. A change that is refused is noted, as an ADD's is
(`refusals`), and tried again when the annotations are others; one that cannot be done yet, after a while.
"""

from __future__ import annotations

from . import cache, changes, pod_annotations, refusals
from .cni import (
    COMMAND_FAILED,
    INVALID_CONFIGURATION,
    NO_BANDWIDTH,
    UPLINK_CONFLICT,
    CniError,
    in_words,
)
from .configuration import node_directory
from .node import attachments, ledger
from .node.records import GONE
from .tools import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from .cache import Kept
    from .configuration import Identity
    from .node.ledger import Heard
    from .node.records import Entry, Key

    Pod = dict[str, Any]
    Promises = dict[str, str]  # by annotation

# A watch ends after that by itself, or sooner if something is to be tried again; and who hears nothing for
# longer asks again (seconds).
_LASTS, _AGAIN, _PATIENCE = 300, 30, 330
_GONE = 410  # the API remembers no longer what has been since
_LONGEST = 64  # characters of an annotation that are looked at, more than a quantity has
_FINAL = INVALID_CONFIGURATION, NO_BANDWIDTH, UPLINK_CONFLICT  # of a change that is refused


class Watched:
    """The annotations of a node's pods, and what of them is to be done.

    `owed` are changes that could not be done yet, in words: they are tried again with all pods.
    """

    def __init__(
        self, networks: Sequence[Identity], caches: Sequence[str], say: Callable[[str], None]
    ) -> None:
        """Of pods of these networks; `caches` are the runtimes', or none: the usual. What is done is said."""
        self._networks = {network.name: network for network in networks}
        self._state = networks[0].state
        self._caches = caches
        self._say = say
        self._kept: dict[Key, Kept] = {}
        self._nobodys: set[tuple[str, str]] = set()  # a pod's uid, and an annotation that nobody keeps
        self.owed: set[str] = set()

    def take_all(self, pods: Iterable[Pod]) -> None:
        """As take(), of all pods there are. What is still owed is not said again."""
        before, self.owed = self.owed, set()
        self.take(pods, before)

    def take(self, pods: Iterable[Pod], known: Iterable[str] = ()) -> None:
        """Change what is promised to pods as their annotations say by now. Raises CniError 107 and 108."""
        attachments.take_over(self._state)
        book = ledger.opened(node_directory(self._state))
        if book is None:
            return
        heard, entries = book.heard(), book.entries()
        book.close()
        # Another cluster's pods may have the same names; what a pod has besides is of the same container.
        containers = {entry.container for entry in entries if entry.network in self._networks}
        ours: dict[str, list[Entry]] = {}
        for entry in entries:
            if entry.container in containers and entry.namespace != GONE:
                ours.setdefault(entry.pod, []).append(entry)
        self._kept = {entry.key: self._kept[entry.key] for entry in entries if entry.key in self._kept}
        for pod in pods:
            of = pod["metadata"]
            own = ours.get(f"{of['namespace']}/{of['name']}", [])
            for entry in own:
                problem = self._look(of, entry, heard.get(entry.key))
                if problem and problem not in {*known, *self.owed}:
                    self._say(f"agent: {problem}; tried again")
                self.owed |= {problem} - {""}
            self._tell_of_nobodys(of, own)

    def _look(self, of: dict[str, Any], entry: Entry, heard: Heard | None) -> str:
        """Do what is to be done for an attachment; what could not be yet, in words."""
        written = of.get("annotations") or {}
        is_annotated = any(name.startswith(pod_annotations.PROMISES) for name in written)
        if not (is_annotated or heard or entry.rate or entry.inward):
            return ""  # as most pods
        kept = self._known(entry.key)
        if kept is None:  # it has just come, or its runtime keeps it elsewhere
            words = f"{entry.who}: no runtime's cache tells what it began with (--cache DIR)"
            return words if is_annotated or heard else ""
        if not self._is_of(entry, of["uid"]):
            return ""
        try:
            taken, refused = heard or (_promises(pod_annotations.of(kept.document)), None)
        except CniError as error:
            return f"{entry.who}: {kept.path}: {error.msg}"
        said = _promises(written, f".{entry.interface}" if kept.is_further else "")
        if said == refused or (said == taken and refused is None):
            return ""
        return self._change(of, entry, said, taken)

    def _tell_of_nobodys(self, of: dict[str, Any], own: list[Entry]) -> None:
        """Refuse what is promised to an interface that the pod has not, or that keeps no promise."""
        own = [entry for entry in own if self._is_of(entry, of["uid"])]
        kept = [self._kept.get(entry.key) for entry in own]
        if None in kept or not own:
            return  # it is just being attached
        further = {one.interface for one in kept if one is not None and one.is_further}
        for name, interface in pod_annotations.promises(of.get("annotations") or {}).items():
            if interface not in further and (of["uid"], name) not in self._nobodys:
                self._nobodys.add((of["uid"], name))
                words = f"{name}: {interface} is no further interface that keeps promises"
                self._refuse(of, own[0], CniError(INVALID_CONFIGURATION, words))

    def _is_of(self, entry: Entry, uid: str) -> bool:
        """Whether it is of that pod, as far as a runtime tells, and not of one that had its name before."""
        uids = {one.uid for one in self._kept.values() if one.uid and one.container == entry.container}
        return uids <= {uid}

    def _known(self, key: Key) -> Kept | None:
        if key not in self._kept:
            for one in cache.read(self._caches or cache.usual())[0]:
                self._kept.setdefault((str(one.document.get("name")), one.container, one.interface), one)
        return self._kept.get(key)

    def _change(self, of: dict[str, Any], entry: Entry, said: Promises, taken: Promises) -> str:
        changed = [name for name in pod_annotations.PROMISES if said.get(name) != taken.get(name)]
        asked = [
            f"{name[len(pod_annotations.OURS) :]}.{entry.interface}={said.get(name, '')}"
            for name in changed
            if name != pod_annotations.ANSWERS
        ]
        if len(asked) != len(changed):  # those that can be changed do not wait for that
            self._refuse(of, entry, CniError(INVALID_CONFIGURATION, changes.FIXED))
        try:
            if asked:
                self._ask(changes.Wanted(entry.container, asked), (said, None))
            else:
                self._hear(entry, (said, None))
        except ValueError as error:
            problem = CniError(INVALID_CONFIGURATION, str(error))
        except (CommandError, OSError) as error:
            problem = CniError(COMMAND_FAILED, in_words(error))
        except CniError as error:
            problem = error
        else:
            return ""
        if problem.code not in _FINAL:
            return f"{entry.who}: {problem.msg}"
        if self._hear(entry, (taken, said)):
            self._refuse(of, entry, problem)
        return ""

    def _ask(self, wanted: changes.Wanted, heard: Heard) -> None:
        done = changes.change(self._state, self._caches or cache.usual(), wanted, heard)
        for line in done.splitlines():
            self._say(f"changed: {line}")

    def _hear(self, entry: Entry, heard: Heard) -> bool:
        """Write down what a pod is annotated with; whether it is still there. Raises CniError."""
        book = ledger.Ledger(node_directory(self._state))
        with book:
            is_there = book.find(entry.key) is not None
            book.hear(entry.key, heard)
        book.close()
        return is_there

    def _refuse(self, of: dict[str, Any], entry: Entry, problem: CniError) -> None:
        words = f"what was promised before stays: {problem.msg}"
        network = next(iter(self._networks.values()))
        pod = {"namespace": of["namespace"], "pod": of["name"], "uid": of["uid"]}
        refusals.write(network.directory, pod, problem.code, words)
        self._say(f"agent: {entry.who}: {words}")


def _promises(annotations: Mapping[str, object], end: str = "") -> Promises:
    """Those that promise something to an interface, whose names have that end, without it."""
    found = {name: annotations.get(f"{name}{end}") for name in pod_annotations.PROMISES}
    return {name: str(value)[:_LONGEST] for name, value in found.items() if value is not None}


def follow(account: str, node: str, watched: Watched) -> None:
    """Take the pods of a node, and then what changes of them, for good.

    Raises OSError, ValueError, LookupError and http.client.HTTPException where the API cannot be asked, and
    what Watched.take() raises.
    """
    import json

    path = f"/api/v1/pods?fieldSelector=spec.nodeName%3D{node}"
    while True:
        with refusals.Asked(account, path, _PATIENCE) as answer:
            there = json.loads(answer.read())
        watched.take_all(there["items"])
        _watch(account, path, there["metadata"]["resourceVersion"], watched)


def _watch(account: str, path: str, listed: str, watched: Watched) -> None:
    """Take what changes of pods from a version on, until all are to be asked for again (follow)."""
    import json

    version, is_new = listed, True
    while True:
        lasts = _AGAIN if watched.owed else _LASTS
        since = f"&watch=true&allowWatchBookmarks=true&timeoutSeconds={lasts}&resourceVersion={version}"
        try:
            with refusals.Asked(account, path + since, _PATIENCE) as answer:
                while line := answer.readline():
                    version = _heard(json.loads(line), watched)
        except refusals.StatusError as error:
            # Who has just been told this version, and is told that it is too old, does not ask at once again.
            if error.status != _GONE or (is_new and version == listed):
                raise
            return
        is_new = False
        if watched.owed:
            return


def _heard(event: dict[str, Any], watched: Watched) -> str:
    """Take an event, and return the version to go on from. Raises StatusError."""
    kind, of = event["type"], event["object"]
    if kind == "ERROR":
        raise refusals.StatusError(of.get("code"), of.get("message"))
    if kind in ("ADDED", "MODIFIED"):
        watched.take([of])
    return str(of["metadata"]["resourceVersion"])
