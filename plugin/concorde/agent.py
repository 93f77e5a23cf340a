"""`concorde agent`: it stays on a node, and sees to it that the kernel goes on having what the ledger says.

Once a minute it compares both, and repairs; at once when a table of ours has gone (`nft flush ruleset`, a
restart of nftables.service). It serves metrics by HTTP, and tells the cluster of pods that were refused.

A node has one, whoever installed it; another cluster's waits to take its place, and tells of its own
network's pods meanwhile. All work is done by child processes: what hangs there hangs alone, and the memory it
takes goes with it. Two of them stay: one grants other nodes what they may send to this one (`fabric`), one
watches the node's pods for promises that somebody annotated them with (`annotated`).
"""

from __future__ import annotations

import os
from errno import ENOBUFS
from select import POLLIN, poll
from time import monotonic, time

from . import VERSION, exporter, links, metrics, refusals, strict_json, tools
from .cni import TRY_AGAIN, CniError, in_words, say, write
from .configuration import invalid, node_directory
from .fabric import keys
from .locks import AgentLock, NodeLock
from .node import attachments, kernel, ledger, nfnetlink, observe, tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable, Sequence
    from typing import Any

    from .configuration import Identity
    from .exporter import Place

_TICK_SECONDS = 1  # between two tries to take the agent's place, and looks at what small things there are
_REST_SECONDS = 0.1  # after each look at changes
_MOST_SCRAPES = 4  # at once; other connections wait in the kernel
_MOST_NAMED = 20  # of repairs, in the log
# An event is told once in this time, and no longer after it; the API is tried again after that (seconds).
_LASTS, _AGAIN = 600, 30
_MOST_EVENTS = 64  # that wait to be told


class Child:
    """Work in a process of its own, and what it answers: a small object, empty if it failed or was killed."""

    def __init__(
        self, work: Callable[[], dict[str, Any]], closing: Sequence[int], stays: bool = False
    ) -> None:
        """Start it, without these descriptors. One that stays ends by end(), and with this process."""
        self.answers, answering = os.pipe()
        ends = os.pipe() if stays else ()
        self.held = ends[1:]  # it ends when nobody has that any more
        self._pid = os.fork()
        if self._pid == 0:
            try:
                for descriptor in (*closing, *self.held):
                    os.close(descriptor)
                if ends:
                    _end_with(ends[0])
                write(answering, strict_json.encode(work()))
            except BaseException as error:  # nothing may go on as a second agent
                say(f"agent: {type(error).__name__}: {error}")
            finally:
                os._exit(0)
        for descriptor in (answering, *ends[:1]):
            os.close(descriptor)

    def end(self) -> None:
        """Let it end, if it stays: at once, whatever it does."""
        for descriptor in self.held:
            os.close(descriptor)
        self.held = ()

    def finish(self) -> dict[str, Any]:
        """Its answer. To be called when there is something to read, or its end."""
        try:
            content = os.read(self.answers, 1 << 16)
            return strict_json.decode(content) if content else {}
        finally:
            self.end()
            os.close(self.answers)
            os.waitpid(self._pid, 0)


class Agent:
    """A node's agent, or one that waits to be it."""

    def __init__(
        self,
        networks: Sequence[Identity],
        listen: Place | None,
        every: float,
        account: str,
        key: str = "",
        record: str = "",
        watched: tuple[str, Sequence[str]] | None = None,
    ) -> None:
        """`key` is a file with the cluster's key in the fabric, `record` one to which its rounds are added.

        `watched` is the cluster's name of this node, where its pods' annotations change what they are
        promised, and the runtimes' caches, or none for the usual.
        Raises CniError 7 if the networks are not of one node, or the key is none.
        """
        self._state = networks[0].state
        if any(network.state != self._state for network in networks):
            raise invalid("stateDir", "an agent looks after one; give all plugins of the list the same")
        self._networks = networks
        self._key, self._record = keys.read(key) if key else b"", record
        self._fabric: Child | None = None
        self._fabric_due = 0.0
        self._watched = watched
        self._watching: Child | None = None
        self._watching_due = 0.0
        self._listen = listen
        self._every = every
        self._account = account
        self._lock: AgentLock | None = None
        self._changes: socket | None = None
        self._listener: socket | None = None
        self._tables: list[str] = []
        self._watch = metrics.Watch()
        self._begun = self._due = 0.0  # of the last look, of the next
        self._changes_at = 0.0
        self._look: Child | None = None
        self._scrapes: list[Child] = []
        self._pending: list[tuple[float, dict[str, Any]]] = []  # events, and when they came
        self._told: dict[tuple[str, ...], float] = {}  # when an event was last told, by whose it is and what
        self._posting: list[tuple[float, dict[str, Any]]] = []  # those of them that are being told
        self._post: Child | None = None
        self._post_at = 0.0
        self._said: dict[str, str] = {}

    def run(self) -> None:
        """Go on until a newer version's agent is to take its place. Raises CniError 108 and OSError."""
        _load()
        self._leave_key()
        while True:
            if self._lock is None:
                self._try_to_take()
            elif self._lock.is_wanted():
                break
            elif not self._lock.is_there():  # the node was dismantled
                self._say_once("place", "agent: somebody removed what this node had")
                self._give_up(self._lock)
                self._leave_key()
            self._collect()
            now = monotonic()
            if self._lock is not None and self._look is None and now >= self._due:
                self._begun, self._due = now, now + self._every
                self._look = Child(lambda: _look(self._state), self._own())
            if self._lock is not None and self._fabric is None and now >= self._fabric_due:
                self._join_fabric()
            if self._watched and self._watching is None and now >= self._watching_due:
                self._watch_pods(*self._watched)
            if self._pending and self._post is None and now >= self._post_at:
                self._posting = list(self._pending)
                self._post = Child(self._tell, self._own())
            self._wait()
        say("agent: a newer version's takes this one's place")

    def _leave_key(self) -> None:
        for network in self._networks:
            if self._key:
                keys.leave(network.directory, self._key)
            else:
                keys.forget(network.directory)

    def _own(self) -> list[int]:
        """What no child may keep open: the lock and the port are to be free when this process ends."""
        sockets = (self._changes, self._listener)
        held = [self._lock.descriptor] if self._lock is not None else []
        ends = [end for one in (self._fabric, self._watching) if one is not None for end in one.held]
        return [*held, *ends, *(one.fileno() for one in sockets if one is not None)]

    def _join_fabric(self) -> None:
        """Begin to tell other nodes what waits here, and to grant them what they may send."""
        self._fabric_due = monotonic() + _TICK_SECONDS
        if not keys.of(self._state):
            return
        from .fabric import loop

        self._fabric = Child(lambda: loop.run(self._state, self._record), self._own(), stays=True)

    def _watch_pods(self, node: str, caches: Sequence[str]) -> None:
        """Change what pods are promised as somebody annotates them."""
        self._watching_due = monotonic() + _AGAIN
        if not refusals.are_possible(self._account):
            return

        def watch() -> dict[str, Any]:
            from http.client import HTTPException

            from . import annotated

            try:
                annotated.follow(self._account, node, annotated.Watched(self._networks, caches, say))
            except (CniError, OSError, ValueError, LookupError, HTTPException) as error:
                return {"problem": f"agent: annotations of pods: {in_words(error)}"}
            return {"problem": ""}

        self._watching = Child(watch, self._own(), stays=True)

    def _try_to_take(self) -> None:
        lock = AgentLock(node_directory(self._state), VERSION)
        if not lock.take():
            lock.close()
            self._say_once("place", "agent: another looks after this node")
            return
        self._say_once("place", "agent: looks after this node")
        self._lock = lock
        self._due = 0
        try:
            self._changes = nfnetlink.changes()
        except OSError as error:
            say(f"agent: looks once in {self._every:g} s only: {in_words(error)}")

    def _give_up(self, lock: AgentLock) -> None:
        lock.close()
        for one in (self._changes, self._listener):
            if one is not None:
                one.close()
        self._lock = self._changes = self._listener = None
        if self._fabric is not None:
            self._fabric.end()

    def _wait(self) -> None:
        """Wait for whatever comes first, a second at most, and take it in."""
        if self._lock is not None and self._listen is not None and self._listener is None:
            self._open(self._listen)
        poller = poll()
        listening = self._listener is not None and len(self._scrapes) < _MOST_SCRAPES
        # Somebody may change tables all the time.
        resting = self._changes_at - monotonic()
        sockets = [self._listener if listening else None, self._changes if resting <= 0 else None]
        children = [self._look, self._post, self._fabric, self._watching, *self._scrapes]
        for descriptor in (
            *(one.fileno() for one in sockets if one is not None),
            *(child.answers for child in children if child is not None),
        ):
            poller.register(descriptor, POLLIN)
        ready = {
            descriptor for descriptor, _ in poller.poll((_TICK_SECONDS if resting <= 0 else resting) * 1000)
        }
        for child in [one for one in self._scrapes if one.answers in ready]:
            child.finish()
            self._scrapes.remove(child)
        if self._look is not None and self._look.answers in ready:
            self._looked(self._look.finish())
        if self._post is not None and self._post.answers in ready:
            self._posted(self._post.finish())
        if self._watching is not None and self._watching.answers in ready:
            answer, self._watching = self._watching.finish(), None
            self._say_once("annotations", answer.get("problem", "agent: who watches pods has ended"))
        if self._fabric is not None and self._fabric.answers in ready:
            self._fabric.finish()  # it has failed, and said why
            self._fabric = None
            self._look_soon()
        if listening and self._listener is not None and self._listener.fileno() in ready:
            self._accept(self._listener)
        if self._changes is not None and self._changes.fileno() in ready:
            self._changed(self._changes)

    def _open(self, at: Place) -> None:
        try:
            self._listener = exporter.listening(at)
            self._say_once("listen", f"agent: serves {exporter.PATH} at {at[0]}, port {at[1]}")
        except OSError as error:
            self._say_once("listen", f"agent: cannot listen at {at[0]}, port {at[1]}: {in_words(error)}")

    def _accept(self, listener: socket) -> None:
        assert self._listen is not None
        connection = exporter.accepted(listener, self._listen)
        if connection is None:
            return

        def serve() -> dict[str, Any]:
            exporter.answer(connection, lambda: metrics.collect(self._state, self._watch))
            return {}

        self._scrapes.append(Child(serve, self._own()))
        connection.close()

    def _changed(self, changes: socket) -> None:
        """Somebody has changed a table."""
        _drain(changes)
        self._changes_at = monotonic() + _REST_SECONDS
        self._hurry()
        # Pods may have come since the last look: what there is now is needed, until a look says otherwise.
        self._tables = list({*self._tables, *_tables()})

    def _hurry(self) -> None:
        """If a table of ours is missing, that does not wait for the minute."""
        if self._tables and not set(_tables()) >= set(self._tables):
            self._look_soon()

    def _look_soon(self) -> None:
        self._due = min(self._due, self._begun + _TICK_SECONDS)

    def _looked(self, answer: dict[str, Any]) -> None:
        self._look = None
        self._say_once("look", answer.get("problem", "agent: a look has failed"))
        if "differences" not in answer:
            return
        self._watch.differences = answer["differences"]
        self._watch.repairs += answer["repaired"]
        self._watch.compared = int(time())
        self._tables = [] if answer["problem"] else answer["tables"]
        self._hurry()

    def _collect(self) -> None:
        """Take in what pods were refused; not the same of one pod again and again."""
        if not refusals.are_possible(self._account):
            return
        now = monotonic()
        self._told = {key: at for key, at in self._told.items() if now < at + _LASTS}
        self._pending = [(at, event) for at, event in self._pending if now < at + _LASTS]
        for network in self._networks:
            if not refusals.are_there(network.directory):
                continue
            for note in self._notes(network):
                key = tuple(str(note.get(name, "")) for name in ("namespace", "pod", "uid", "message"))
                if key in self._told or len(self._pending) >= _MOST_EVENTS:
                    continue
                self._told[key] = now
                self._pending.append((now, refusals.event(note, os.uname().nodename, time())))

    def _notes(self, network: Identity) -> list[refusals.Note]:
        try:
            return refusals.take(network.directory)
        except (CniError, OSError) as error:
            self._say_once("events", f"agent: cannot tell of refused pods: {error}")
            return []

    def _tell(self) -> dict[str, Any]:
        done, problem = refusals.post(self._account, [event for _, event in self._posting])
        return {"done": done, "problem": problem}

    def _posted(self, answer: dict[str, Any]) -> None:
        self._post = None
        done = self._posting[: answer.get("done", 0)]
        self._pending = [one for one in self._pending if one not in done]
        problem = answer.get("problem", "the API could not be asked")
        self._say_once("events", f"agent: {problem}" if problem else "")
        if self._pending:
            self._post_at = monotonic() + _AGAIN

    def _say_once(self, about: str, text: str) -> None:
        """Say it, unless it was the last thing that was said about this."""
        if text and self._said.get(about) != text:
            say(text)
        self._said[about] = text


def _load() -> None:
    """Load what children need, which then have it without loading it; and let memory be collected."""
    import gc

    from .node import differences  # noqa: F401

    gc.enable()
    gc.collect()
    gc.freeze()


def _look(state: str) -> dict[str, Any]:
    """Compare, without the node's lock; if anything differs, compare with it, and repair."""
    found: list[str] = []
    families: list[str] = []
    try:
        found, families = _differences(state)
        repaired = (repair(state) or []) if found else []
    except (CniError, tools.CommandError, OSError) as error:
        counts = {"differences": len(found), "repaired": 0, "tables": families} if found else {}
        return {**counts, "problem": f"agent: {in_words(error)}"}
    for text in repaired[:_MOST_NAMED]:
        say(f"repaired: {text}")
    if len(repaired) > _MOST_NAMED:
        say(f"repaired: {len(repaired) - _MOST_NAMED} more")
    count = len(repaired)
    return {"differences": count, "repaired": count, "tables": families, "problem": ""}


def repair(state: str) -> list[str] | None:
    """Make the kernel's state what the ledger says; what was wrong, in words; None where no pod is attached.

    Raises CniError 106, 107 and 108, tools.CommandError and OSError.
    """
    directory = node_directory(state)
    if not ledger.is_there(directory):
        return None
    attachments.take_over(state)
    with NodeLock(directory):
        book = ledger.Ledger(directory)
        attachments.complete(book)
        trees, entries = book.trees(), book.entries()
        if not (trees or entries):
            return None
        return [*kernel.restore(trees, entries), *kernel.repair(trees, entries)]


def _differences(state: str) -> tuple[list[str], list[str]]:
    """What seems wrong, in words, without the node's lock: no pod waits for it; and whose tables are needed.

    A call that changes something meanwhile may show as a difference; repair() looks again. Raises what that
    raises, but CniError 106.
    """
    try:
        book = ledger.Ledger(node_directory(state), reading=True)
    except CniError as error:
        if error.code != TRY_AGAIN:
            raise
        return [error.msg], []  # left half changed by a killed call, which whoever may write undoes
    trees, entries = book.trees(), book.entries()
    if not (trees or entries):
        return [], []
    families = tables.families(entries, links.has_ipv6())
    roots, gone = kernel.missing(trees, entries)
    if roots or gone:  # whoever repairs makes these first
        lacking = [*(f"{tree.uplink} has no tree" for tree in roots), *(f"no table {of}" for of in gone)]
        return lacking, families
    _, found = kernel.compare(trees, entries)
    return [difference.text for difference in found if not difference.waits], families


def _end_with(other: int) -> None:
    """End this process when a pipe's other end is closed, whatever it waits for."""
    from _thread import start_new_thread

    def end() -> None:
        os.read(other, 1)
        os._exit(0)

    start_new_thread(end, ())


def _drain(changes: socket) -> None:
    """Read all that is there, whatever it says; what the kernel had no room for is an error, once."""
    while True:
        try:
            changes.recv(1 << 16)
        except OSError as error:
            if error.errno != ENOBUFS:
                return


def _tables() -> list[str]:
    """The families that have a table of ours."""
    return [family for family in observe.FAMILIES if nfnetlink.has_table(family)]
