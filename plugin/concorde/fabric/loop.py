"""The loop of a node's agent: what waits here is told to other nodes, and what waits there is granted.

Each round it looks at its own classes (`sending`), tells the nodes they send to (`messages`), and divides its
own link between those that told it something (`division`). A round is 20 ms; where hundreds of classes send,
it is as much longer as it is more work. Half-way it glances at who began to send, for whom the next round is
at once, and while a promise wakes here it divides then, too. When nothing goes into the fabric and nothing
came for two seconds, it sleeps; then a packet to a node wakes it, which the kernel logs (nft `log group`), or
a node's message.

What was granted ends by itself: in the kernel (`node.peers`), and for promised classes here.
"""

from __future__ import annotations

import os
from select import POLLIN, poll
from time import monotonic, time

from .. import addresses, files, state_files, strict_json
from ..cni import CniError, in_words, say
from ..configuration import node_directory
from ..leases import EGRESS, INGRESS
from ..locks import Presence
from ..node import ledger, peers, uplinks
from ..node.records import of_tree, promised
from ..tools import CommandError
from . import keys, messages, waking
from .arrivals import Arrivals
from .division import Downlink
from .sending import Sending
from .talk import Talk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn

    from ..node.records import Entry, Fabric, Tree
    from .division import Claim

_ROUND = 0.020  # seconds
# After it heard messages it lets others gather, for waking costs more than reading: for 2 ms where the next
# round or glance is 10 ms away, and the longer that is, the more so (of its square in seconds).
_GATHERS = 20
# What a class that is told or granted adds to a round, and one that sent within the last second, so that all
# take a twentieth of a processor at most; up to the second, of which a grant lasts several (seconds).
_EACH, _REMEMBERED, _LONGEST = 0.0004, 0.0002, 0.1
_LOOKS_AT_LEDGER = 0.1  # seconds
# With nothing to tell for so long it sleeps; the ledger is looked at after such a nap (seconds).
_ASLEEP, _NAP = 2.0, 5.0
_AGAIN = 1.0  # until it tries again to begin (seconds)
# Who is silent for longer than `messages.SHOWN` need not show all its keys any more (seconds).
_GREETS = 30.0
_TELLS = 1.0  # seconds, between two states that are written down


class _Problems:
    """What is wrong, each told once, and when it is right again."""

    def __init__(self) -> None:
        self._now: dict[str, str] = {}

    def say(self, about: str, problem: str, right: str) -> None:
        """Say what is the problem, or none, with something; what is right, if it was one before."""
        if problem != self._now.get(about, ""):
            self._now[about] = problem
            say(f"agent: {problem or right}")


class Loop:
    """A node's part in the fabric."""

    def __init__(self, state: str, record: str = "") -> None:
        """`record` is a file to which each round is added, for whoever looks into it. Raises OSError."""
        self._state = state
        self._directory = node_directory(state)
        self._record = open(record, "a", encoding="ascii") if record else None  # noqa: SIM115 - it stays open
        self._changed: tuple[int, ...] = ()  # when the ledger did, and the keys
        self._tree: Tree | None = None
        self._clusters: list[bytes] = []
        self._node: Node | None = None
        self._look_at = self._listens_at = 0.0
        self._asleep = False
        self._lasts = 0.0  # until the next round or glance
        self._problems = _Problems()
        self._shown_at = 0.0
        self._wake = waking.listen()
        self._present = Presence(self._directory, state_files.FABRIC_LOCK)

    def run(self) -> NoReturn:
        """Go on for good.

        Raises CniError 107 and 108, tools.CommandError and OSError.
        """
        due = 0.0
        while True:
            now = monotonic()
            self._look_at_ledger(now)
            if now >= due:
                self._lasts = self._round(now)
                self._asleep = self._lasts >= _NAP
                due = now + self._lasts
            if self._wait(due):
                due = 0.0

    def _round(self, now: float) -> float:
        """One round, if there is a fabric; how long until the next (seconds)."""
        if self._node is None:
            return _LOOKS_AT_LEDGER
        lasts = self._node.round(now)
        if now - self._shown_at >= _TELLS:
            self._shown_at = now
            self._show(self._node.state(now))
        if self._record is not None:
            self._write_down(self._record, self._node)
        return lasts

    def _look_at_ledger(self, now: float) -> None:
        if now < self._look_at:
            return
        self._look_at = now + _LOOKS_AT_LEDGER
        try:
            changed = os.stat(ledger.path(self._directory)).st_ctime_ns, *keys.changed(self._state)
        except FileNotFoundError:
            return
        if changed == self._changed:
            return
        try:
            book = ledger.Ledger(self._directory, reading=True)
        except CniError as error:  # left half changed, which the agent's look repairs
            self._problems.say("ledger", in_words(error), "")
            return
        trees, entries = book.trees(), book.entries()
        book.close()
        tree = next((one for one in trees if one.fabric is not None and one.direction == EGRESS), None)
        problem = ""
        try:
            self._take(tree, of_tree(tree, entries) if tree is not None else [], now)
            self._changed = changed
        except (CniError, OSError, ValueError) as error:
            problem = f"{tree.uplink if tree else ''}: {in_words(error)}"
            self._tree, self._look_at = None, now + _AGAIN
        self._problems.say("ledger", problem, "takes part in the fabric again")

    def _take(self, tree: Tree | None, entries: list[Entry], now: float) -> None:
        """Take in what the ledger says: begin, go on otherwise, or end."""
        clusters = keys.of(self._state)
        if self._tree == tree and self._clusters == clusters:
            if self._node is not None and tree is not None:
                self._node.update(tree, entries, now)
            return
        if self._node is not None:
            self._node.close()
        self._tree, self._clusters, self._node = tree, clusters, None
        if tree is None or tree.fabric is None or not clusters:
            return
        self._node = Node(self._state, tree, tree.fabric, entries, clusters)

    def _wait(self, due: float) -> bool:
        """Wait for a round or a message; whether it was woken."""
        now, node = monotonic(), self._node
        poller = poll()
        if node is not None and now >= self._listens_at:
            poller.register(node.descriptor, POLLIN)
        elif node is not None:
            due = min(due, self._listens_at)
        if node is not None and self._asleep and self._wake is not None:
            poller.register(self._wake.fileno(), POLLIN)
        ready = {descriptor for descriptor, _ in poller.poll(max(0.0, due - now) * 1000)}
        now, woken = monotonic(), False
        if node is not None and self._wake is not None and self._wake.fileno() in ready:
            waking.drain(self._wake)
            woken = True
            node.wake(now)
        if node is not None and node.descriptor in ready:
            self._listens_at = now + (0.0 if self._asleep else _GATHERS * self._lasts**2)
            woken = (node.hear(now) and self._asleep) or woken
        return woken

    def _show(self, state: dict[str, Any]) -> None:
        """Write down what it grants. On a full disk it grants as before."""
        problem = ""
        try:
            files.replace(f"{self._directory}/{state_files.FABRIC_STATE}", strict_json.encode(state))
        except OSError as error:
            problem = f"cannot tell what it grants: {in_words(error)}"
        self._problems.say("state", problem, "tells again what it grants")

    def _write_down(self, record: Any, node: Node) -> None:
        line = node.last_round()
        if line:
            record.write(strict_json.encode({"at": monotonic(), **line}).decode())
            record.flush()


def run(state: str, record: str = "") -> NoReturn:
    """Take part in the fabric for good. As for Loop."""
    loop = Loop(state, record)
    say("agent: takes part in the fabric")
    loop.run()


class Node:
    """A node that is in a fabric: what it sends, what it grants, and what it says."""

    def __init__(
        self, state: str, tree: Tree, fabric: Fabric, entries: list[Entry], clusters: list[bytes]
    ) -> None:
        """`clusters` are their keys. Raises OSError if its uplink is missing, or has no address."""
        self._problems = _Problems()
        self._own = addresses.dotted(uplinks.address(tree.uplink))
        self._talk = Talk(self._own, fabric.port, clusters)
        self._sending = Sending(state, tree, entries)
        self._sending.begin()
        self._downlink = Downlink(tree.usable)
        self.update(tree, entries, monotonic())
        self._arrivals = Arrivals(tree.uplink)
        self._look_at = self._arrived_at = self._greeted_at = 0.0
        self._active_at = monotonic()
        self._reported: dict[int, dict[int, Claim]] = {}
        self._granted: dict[str, dict[int, float]] = {}

    @property
    def descriptor(self) -> int:
        """What has something to read when another node says something."""
        return self._talk.descriptor

    def update(self, tree: Tree, entries: list[Entry], now: float) -> None:
        """Take in what the ledger says by now. Raises OSError."""
        self._tree = tree
        self._sending.update(tree, entries, now)
        self._downlink.promised = tree.on_wire(promised(entries, INGRESS))

    def close(self) -> None:
        """End it."""
        for one in (self._sending, self._talk, self._arrivals):
            one.close()

    def wake(self, now: float) -> None:
        """Something is on its way to another node."""
        self._active_at = now

    def round(self, now: float) -> float:
        """Look, tell and divide, or half-way only what does not wait; how long until the next (seconds)."""
        looks = now >= self._look_at or self._sending.wakes(now)
        if looks or self._downlink.hurries(now):
            told = self._look(now) if looks else []
            self._granted = self._downlink.divide(now)
            for node in {*told, *self._granted}:
                self._tell(node, node in told, node in self._granted, now)
        self._sending.expire(now)
        until_next = half_a_round(self._reported, self._granted, self._sending.remembered)
        if looks:
            self._look_at = now + 1.5 * until_next
        if now - self._active_at > _ASLEEP and self._downlink.asleep(now):
            return _NAP
        return until_next

    def _look(self, now: float) -> list[str]:
        """See what is sent from here, and what came; who is to hear of it."""
        self._reported = self._sending.look(now)
        self._measure(now)
        told = list(self._reported)
        if told:
            self._active_at = now
        elif now - self._greeted_at > _GREETS:
            self._greeted_at = now
            told = list(self._tree.peers)
        return [addresses.dotted(node) for node in told]

    def _tell(self, node: str, reports: bool, grants: bool, now: float) -> None:
        """Say to a node what waits for it here, what it may send, or both."""
        number = addresses.parse(node)
        kind, body = messages.REPORT, messages.report(self._reported.get(number, {})) if reports else b""
        if grants:
            granted = messages.grant(self._granted[node], peers.LEASE / 1000)
            kind, body = (
                (messages.BOTH, messages.both(body, granted)) if reports else (messages.GRANT, granted)
            )
        self._talk.tell(node, kind, body, now, self._sending.class_of(number, now))

    def _measure(self, now: float) -> None:
        """What came since, by node."""
        elapsed, self._arrived_at = max(now - self._arrived_at, 0.001), now
        bits = 8 * self._tree.wire_of_packets
        arrived = self._arrivals.look(now).items()
        self._downlink.arrived({node: count * bits / elapsed for node, count in arrived}, now)

    def hear(self, now: float) -> bool:
        """Take in what other nodes say; a promise that wakes is not kept waiting for the next round.

        Return whether somebody has something to send here: who only greets wakes nobody.
        """
        woke = claimed = False
        for node, message in self._talk.heard(now):
            if message.kind == messages.HELLO:  # it could not tell whether our last message was of now
                self._tell(node, True, False, now)
            if message.kind in (messages.REPORT, messages.BOTH):
                claimed = claimed or bool(message.claims)
                woke = self._downlink.report(node, message.claims, now) or woke
            if message.kind in (messages.GRANT, messages.BOTH):
                self._obey(addresses.parse(node), message, now)
        if claimed:
            self._active_at = now
        if woke:
            self._granted = self._downlink.divide(now)
            for node in self._granted:
                self._tell(node, False, True, now)
        return claimed

    def _obey(self, node: int, message: messages.Message, now: float) -> None:
        what, problem = f"what {addresses.dotted(node)} grants", ""
        try:
            self._sending.obey(node, message.ceilings, message.lasts, now)
        except (CniError, CommandError, OSError) as error:
            problem = f"{what}: {in_words(error)}"
        self._problems.say(what, problem, f"{what} is done again")

    def state(self, now: float) -> dict[str, Any]:
        """What there is to tell people and metrics; rates in bits per second of the wire."""
        link = self._downlink
        return {
            "at": int(time()),
            "address": self._own,
            "downlink": {
                "promised": int(link.promised),
                "reserved": int(link.reserved),
                "foreign": int(link.foreign),
                "free": int(link.free),
            },
            "granted": _whole(self._granted),
            "refused": dict(self._talk.refused),
            **self._sending.state(now),
        }

    def last_round(self) -> dict[str, Any]:
        """What it told and granted in the last round; empty if there was nothing."""
        if not (self._reported or self._granted):
            return {}
        link = self._downlink
        told = {
            addresses.dotted(node): {
                f"{minor:x}": [int(claim.guarantee), int(claim.rate), int(claim.waiting)]
                for minor, claim in claims.items()
            }
            for node, claims in self._reported.items()
        }
        return {
            "node": self._own,
            "told": told,
            "granted": _whole(self._granted),
            "reserved": int(link.reserved),
            "foreign": int(link.foreign),
            "free": int(link.free),
        }


def half_a_round(
    told: Mapping[int, Mapping[int, Any]], granted: Mapping[str, Mapping[int, Any]], remembered: int
) -> float:
    """How long half a round is with so many classes (seconds)."""
    work = sum(map(len, (*told.values(), *granted.values()))) * _EACH + remembered * _REMEMBERED
    return min(max(_ROUND, work), _LONGEST) / 2


def _whole(granted: dict[str, dict[int, float]]) -> dict[str, dict[str, int]]:
    return {
        node: {f"{minor:x}": int(rate) for minor, rate in ceilings.items()}
        for node, ceilings in granted.items()
    }
