"""The sender's half: what this node's classes have for other nodes, and the ceilings that these grant.

What goes to a node without a promise has a class of that node's, made when it grants something first. A
class with a promise has its guarantee whoever grants what, and besides it the least that is granted by the
nodes it sends to, once it needs that; towards what is outside the fabric, all that its pod may have.

Rates are bits per second of the wire.
"""

from __future__ import annotations

from errno import ENOENT

from .. import addresses, batches
from ..configuration import node_directory
from ..locks import NodeLock
from ..node import htb, peers
from ..node.kernel import is_fair
from ..node.ledger import Ledger
from . import kernel
from .division import MARGIN, Claim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..node.records import Entry, Tree

# A node hears of a class for so long after it sent last (seconds).
REMEMBERED = 1.0
# What is at its ceiling sends this part of it at least; below that, for so many looks on end, while packets
# wait, something else holds it back.
_NEARLY, _LOOKS = 0.85, 3
# Who sends this much (bytes) for the first time after such a while (seconds) begins to send.
_BEGINS, _RESTED = 3000, 0.04
# Ceilings this near are the same.
_SAME = 0.005


class _Class:
    """A class, as it was seen last."""

    def __init__(self, sample: kernel.Sample, ceil: int, now: float) -> None:
        self.at = now
        self.sent = sample.sent
        self.ceil = ceil
        self.rate = 0.0
        self.waiting = sample.waiting
        self.held_back = 0

    def see(self, sample: kernel.Sample, now: float) -> None:
        """Take in what it has sent since."""
        self.rate = max(0, sample.sent - self.sent) * 8 / max(now - self.at, 0.001)
        self.at, self.sent, self.waiting = now, sample.sent, sample.waiting
        slow = self.waiting > 0 and self.rate < _NEARLY * self.ceil
        self.held_back = self.held_back + 1 if slow else 0

    @property
    def needs_more(self) -> bool:
        """Whether it could send more than its ceiling."""
        return self.waiting > 0 or self.rate >= _NEARLY * self.ceil

    def rest(self, now: float) -> None:
        """It has sent nothing since, and nothing waits there."""
        self.at, self.rate, self.held_back = now, 0.0, 0


def _together(one: Claim, other: Claim) -> Claim:
    """What two classes without a promise claim that are one to the node they send to."""
    waiting = one.waiting + other.waiting
    return Claim(0, one.rate + other.rate, waiting, one.limited and other.limited)


class Sending:
    """What a node sends into the fabric."""

    def __init__(self, state: str, tree: Tree, entries: list[Entry]) -> None:
        """Raises OSError if the uplink is missing."""
        self._state = state
        self._classes = kernel.Classes(tree)
        self._counters = kernel.Counters()
        self._seen: dict[int, _Class] = {}
        self._planted = False  # the first pod's is written down before the kernel has it
        self._last: dict[int, dict[int, float]] = {}  # when a node's class sent last, by both
        self._until: dict[int, float] = {}  # how long a node's grant to its class lasts
        # What a node grants to promised classes, and how long that lasts; its next grant takes its place.
        self._excess: dict[int, dict[int, int]] = {}
        self._ends: dict[int, float] = {}
        self._promised: dict[int, tuple[int, int]] = {}
        self.update(tree, entries, 0.0)

    def update(self, tree: Tree, entries: list[Entry], now: float) -> None:
        """Take in what the ledger says by now. Raises OSError."""
        self._tree = tree
        before, self._promised = (
            self._promised,
            {
                entry.minor: (tree.on_wire(entry.rate), htb.most(tree, entry))
                for entry in entries
                if entry.minor is not None and entry.rate
            },
        )
        for minor, promise in self._promised.items():
            if minor in self._seen and before.get(minor) != promise:
                # Who changed it set its ceiling, too, and what we set since may be of the promise before.
                self._seen[minor].ceil = 0
                self._settle(minor, now)

    def begin(self) -> None:
        """Take back what an agent before has granted. Raises OSError."""
        for minor in self._classes.read(self._promised):
            guarantee, _ = self._promised[minor]
            self._classes.set(minor, guarantee, guarantee)

    def close(self) -> None:
        """End it."""
        self._classes.close()
        self._counters.close()

    @property
    def remembered(self) -> int:
        """How many classes sent within the last second: each is counted, and looked at, for so long."""
        return sum(map(len, self._last.values()))

    def look(self, now: float) -> dict[int, dict[int, Claim]]:
        """What each node is to hear: a claim for each class that sends there. Raises OSError."""
        sent = self._counted(peers.SENT, kernel.node_and_class)
        asked = self._counted(peers.ASKED, lambda key: (kernel.node(key), htb.SAFE))
        granted = {node: self._tree.peers[node] for node, until in self._until.items() if until > now}
        minors = {*granted.values(), *(minor for _, minor in sent), *(minor for _, minor in asked)}
        self._see(minors, {minor for known in self._last.values() for minor in known}, now)
        parts = self._parts({**sent, **asked}, dict.fromkeys(granted.items(), 1))
        return self._claims(parts, now)

    def wakes(self, now: float) -> bool:
        """Whether promises began to be used since the last look, more than links have room for besides.

        Raises OSError.
        """
        if not self._promised:
            return False
        counted = self._counters.look(peers.SENT, glance=True)
        began = {
            minor
            for node, minor in (
                kernel.node_and_class(key) for key, size in counted.items() if size >= _BEGINS
            )
            if now - self._last.get(node, {}).get(minor, 0.0) > _RESTED
        }
        promised = sum(self._promised.get(minor, (0, 0))[0] for minor in began)
        return promised > (1 - MARGIN) * self._tree.usable

    def _counted(self, name: str, of: Callable[[bytes], tuple[int, int]]) -> dict[tuple[int, int], int]:
        return {of(key): count for key, count in self._counters.look(name).items() if count}

    def _see(self, minors: set[int], remembered: set[int], now: float) -> None:
        """Read these classes, and those of the others that had packets waiting: the rest sends nothing."""
        wanted = minors | {one for one in remembered if one not in self._seen or self._seen[one].waiting}
        samples = self._classes.read({htb.ROOT, *wanted})
        root = samples.pop(htb.ROOT, None)
        if root is None and self._planted:
            raise OSError(ENOENT, "the tree has gone", self._tree.uplink)
        self._planted = root is not None
        for minor, sample in samples.items():
            known = self._seen.get(minor)
            if known is None:
                guarantee, _ = self._promised.get(minor, (0, 0))
                self._seen[minor] = _Class(sample, guarantee, now)
            else:
                known.see(sample, now)
        for minor in self._seen.keys() - samples.keys():
            if minor in remembered and minor not in wanted:
                self._seen[minor].rest(now)
            else:
                del self._seen[minor]

    @staticmethod
    def _parts(
        counted: Mapping[tuple[int, int], int], whole: Mapping[tuple[int, int], int]
    ) -> dict[tuple[int, int], float]:
        """Which part of a class's traffic goes to which node."""
        totals: dict[int, int] = {}
        for (_, minor), count in counted.items():
            totals[minor] = totals.get(minor, 0) + count
        parts: dict[tuple[int, int], float] = {key: count / totals[key[1]] for key, count in counted.items()}
        return {**parts, **whole}

    def _claims(self, parts: Mapping[tuple[int, int], float], now: float) -> dict[int, dict[int, Claim]]:
        """Of what sends now; a node that is not sent to any more hears for a while that there is nothing."""
        unsettled = self._forget(now)
        claims: dict[int, dict[int, Claim]] = {node: {} for node in self._last}
        for (node, minor), part in parts.items():
            its = self._seen.get(minor)
            if its is None or not part * (its.rate + its.waiting):
                continue
            known = self._last.setdefault(node, {})
            if minor not in known or its.needs_more:
                unsettled.add(minor)
            known[minor] = now
            claim = self._claim(node, minor, part)
            # A node that has a class hears of that alone, whatever went there before, or without it.
            name = self._tree.peers.get(node, minor) if minor == htb.SAFE else minor
            of_node = claims.setdefault(node, {})
            of_node[name] = _together(of_node[name], claim) if name in of_node else claim
        for minor in unsettled:
            self._settle(minor, now)
        return claims

    def _forget(self, now: float) -> set[int]:
        """Forget who has long sent nothing to a node; the classes that send to fewer nodes by now."""
        fewer = set()
        for node, known in list(self._last.items()):
            over = [minor for minor, at in known.items() if now - at > REMEMBERED or minor not in self._seen]
            for minor in over:
                del known[minor]
            fewer.update(over)
            if not known:
                del self._last[node]
        return fewer

    def _claim(self, node: int, minor: int, part: float) -> Claim:
        its = self._seen[minor]
        guarantee, _ = self._promised.get(minor, (0, 0))
        # A class that several nodes share waits for all of them; each hears of its part of what it sends.
        elsewhere = its.held_back >= _LOOKS or (guarantee > 0 and self._is_held_elsewhere(node, minor))
        return Claim(guarantee, its.rate * part, its.waiting, elsewhere)

    def _is_held_elsewhere(self, node: int, minor: int) -> bool:
        """Whether another node grants a class less than this one does."""
        grants = self._grants(minor)
        return min(grants.values(), default=0) < grants.get(node, 0) * (1 - _SAME)

    def obey(self, node: int, ceilings: Mapping[int, float], lasts: float, now: float) -> None:
        """Do what a node grants, for so many seconds. Raises CniError, tools.CommandError and OSError."""
        excess = {minor: int(rate) for minor, rate in ceilings.items() if minor in self._promised}
        before = self._excess.get(node, {})
        self._excess[node], self._ends[node] = excess, now + lasts
        for minor in {minor for minor, _ in before.items() ^ excess.items()}:
            self._settle(minor, now)
        unpromised = self._tree.peers.get(node, htb.SAFE)
        if unpromised in ceilings:
            self._lead(node, int(ceilings[unpromised]), lasts, now)

    def _lead(self, node: int, ceil: int, lasts: float, now: float) -> None:
        minor = self._tree.peers.get(node)
        if minor is None:
            minor = self._make(node)
        self._until[node] = now + lasts
        rate, _ = htb.rates(self._tree, minor, 0)
        self._set(minor, rate, max(ceil, htb.LEAST_RATE), now)

    def _make(self, node: int) -> int:
        """Make a node's class. Its number is written down before the kernel has it."""
        directory = node_directory(self._state)
        with NodeLock(directory):
            book = Ledger(directory)
            with book:
                minor = book.add_peer(self._tree, node)
            book.close()
            self._tree.peers[node] = minor
            if minor not in self._classes.read([minor]):
                batches.run("tc", htb.add_class(self._tree, minor, 0, fair=is_fair(self._tree)))
        return minor

    def _grants(self, minor: int) -> dict[int, int]:
        """What each node that a promised class sends to grants it: who says nothing of it, its guarantee."""
        guarantee, _ = self._promised[minor]
        nodes = [node for node, known in self._last.items() if minor in known]
        return {node: self._excess.get(node, {}).get(minor, guarantee) for node in nodes}

    def _settle(self, minor: int, now: float) -> None:
        """Give a promised class what the nodes it sends to grant, but its guarantee at least.

        It has more only once it needs that: most promises are never used up, and a change is dear.
        """
        its = self._seen.get(minor)
        if its is None or minor not in self._promised:
            return  # it has not sent yet, or its pod has gone
        guarantee, most = self._promised[minor]
        ceil = min(most, max(guarantee, min(self._grants(minor).values(), default=guarantee)))
        if its.needs_more or ceil < its.ceil:
            self._set(minor, guarantee, ceil, now)

    def _set(self, minor: int, rate: int, ceil: int, now: float) -> None:
        known = self._seen.get(minor)
        if known is not None and abs(ceil - known.ceil) <= _SAME * ceil:
            return
        ceil = ceil // 8 * 8
        self._classes.set(minor, rate, ceil)
        if known is None:
            sample = self._classes.read([minor]).get(minor)
            if sample is None:
                return  # its pod has just ended
            known = self._seen[minor] = _Class(kernel.Sample(sample.sent, 0), ceil, now)
        known.ceil = ceil

    def expire(self, now: float) -> None:
        """Take back from promised classes what nobody grants any more. Raises OSError."""
        for node in [node for node, ends in self._ends.items() if ends <= now]:
            del self._ends[node]
            for minor in self._excess.pop(node):
                self._settle(minor, now)

    def class_of(self, node: int, now: float) -> int | None:
        """The class of what goes to a node, while its grant lasts."""
        return self._tree.peers.get(node) if self._until.get(node, 0.0) > now else None

    def state(self, now: float) -> dict[str, object]:
        """What there is to tell: ceilings (bits per second of the wire) by class, and nodes by theirs."""
        return {
            "ceilings": {htb.handle(minor): its.ceil for minor, its in self._seen.items() if its.ceil},
            "nodes": {
                addresses.dotted(node): htb.handle(self._tree.peers[node])
                for node, until in self._until.items()
                if until > now
            },
        }
