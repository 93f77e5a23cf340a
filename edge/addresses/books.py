"""What a controller knows of a cluster's nodes and configs, and what is therefore to be done.

Pure: it is told what the API says (``take``) and what became of what was to be given (``conclude``), and says
what is to be given, marked and told. Nothing is given before all kinds were listed once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from ipaddress import IPv4Network, IPv6Network
from typing import NamedTuple, Optional

from edge.addresses import checks, kinds
from edge.addresses.allocation import Allocator, Config, Node, Range
from edge.addresses.arrivals import Arrivals, Gifts, as_node
from edge.addresses.selectors import NOBODY
from edge.addresses.space import Network
from edge.http import Json
from edge.watch import Changed, Listed, News

# Stands in a config as long as nodes have blocks of it: its deletion waits for them.
FINALIZER = "addresses.contmec.dev/nodes"
# The spec by which a config gave first, as JSON: what nodes have of it does not change with it.
FIRST_SPEC = "addresses.contmec.dev/spec"
# Two blocks as a server may be asked for; nobody is given these (RFC 5737, RFC 3849: for documentation).
PROBE = (IPv4Network("192.0.2.0/30"), IPv6Network("2001:db8::/126"))
MOST_LISTED = 1000  # nodes in a config's status, by name: an object has at most 1.5 MB
READY = "Ready"
ONE_FAMILY = "OneFamily"  # a config's reason: the server keeps one block a node
WAITS = "CIDRNotAvailable"  # a node's reason, as kube-controller-manager calls it


class Rules(NamedTuple):
    """What a controller is told of its cluster's network: what is ``reserved`` no node gets.

    Where IPv4 is an ``island``, configs of two families must have the ``cluster``'s IPv4 range and mask.
    """

    reserved: Sequence[Network] = ()
    island: bool = False
    cluster: Optional[Range] = None  # noqa: UP045 (nodes may have Python 3.9)


NO_RULES = Rules()


class Gift(NamedTuple):
    """Blocks that are to be written into a Node; ``again``: it may have been written already.

    With ``asks`` nothing is to be written, and only asked whether the server would keep them all.
    """

    node: str
    uid: str
    blocks: tuple[Network, ...]
    again: bool = False
    asks: bool = False


class Outcome(NamedTuple):
    """What became of a gift. ``certain``: it is written, or the node has others or is gone; else who knows?

    ``one_family``: the server would have kept the first block alone, so nothing was written.
    """

    gift: Gift
    certain: bool
    problem: str = ""
    one_family: bool = False


class Held(NamedTuple):
    """A config's object, what it asks for, and why it gives nothing; without a reason it gives."""

    kind: str
    document: Json
    config: Optional[Config]  # noqa: UP045 (nodes may have Python 3.9)
    reason: str = ""
    message: str = ""
    first: str = ""  # the spec by which it gave first, as JSON

    @property
    def name(self) -> str:
        """What nodes are told it is called."""
        return kinds.called(self.document)

    @property
    def finalizers(self) -> list[str]:
        """Who must have done something before it may be gone."""
        return list(self.document["metadata"].get("finalizers") or ())


class Books:
    """The books of one cluster; ``node_kind`` and ``config_kinds`` are their paths in the API.

    ``in_flight`` are gifts, by node and uid, that may be written at any time.
    """

    def __init__(
        self,
        arrivals: Arrivals,
        node_kind: str,
        config_kinds: Iterable[str],
        rules: Rules = NO_RULES,
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.arrivals = arrivals
        self.configs: dict[str, Held] = {}
        self._node_kind, self._log = node_kind, log
        self._rules = rules
        self._nodes: dict[str, Node] = {}
        self._documents: dict[str, dict[str, Json]] = {kind: {} for kind in config_kinds}
        self._missing = {node_kind, *self._documents}  # kinds that were not listed yet
        # By uid the specs by which configs gave first: who replaces an object, drops its annotations.
        self._firsts: dict[str, str] = {}
        self.in_flight: set[tuple[str, str]] = set()
        self._gifts: dict[str, Gift] = {}
        self._judge_again = False
        # Whether configs give nothing only if the server keeps two families, whether it is being asked, and
        # whether it said that it does.
        self._in_doubt = self._asking = self._keeps_both = False

    @property
    def allocator(self) -> Allocator:
        """Who has what."""
        return self.arrivals.allocator

    def take(self, news: News) -> None:
        """Take into account what the API says."""
        if news.kind == self._node_kind:
            self._take_nodes(news)
        else:
            self._take_configs(news)
        if isinstance(news, Listed) and news.kind in self._missing:
            self._missing.remove(news.kind)
            if not self._missing:
                self._judge()
                self._promise(self.arrivals.listed(self._nodes.values()))
                self._report()

    def gifts(self) -> list[Gift]:
        """Return what is to be given now; each is in flight until its outcome is concluded."""
        if self._judge_again and not self._missing:
            self._judge()
            self._promise(self.arrivals.serve())
        found = [gift for gift in self._gifts.values() if gift[:2] not in self.in_flight]
        self._gifts.clear()
        self.in_flight.update(gift[:2] for gift in found)
        question = None if self._asking else self._question()
        return [*found, question] if question else found

    def conclude(self, outcome: Outcome) -> Optional[Gift]:  # noqa: UP045 (nodes may have Python 3.9)
        """Take an outcome into account; return what is to be tried again after a while.

        What a node has now is seen when the API's changes say so. Until then nobody else gets it.
        """
        gift = outcome.gift
        if gift.asks:
            self._keeps_both = outcome.certain
            if outcome.one_family:
                self._keep_one_family(gift.node)
            return self._question()
        self.in_flight.discard(gift[:2])
        promised = self.arrivals.promised.get(gift.node)
        if promised is None or promised.uid != gift.uid or outcome.certain:
            return None
        if outcome.one_family:
            self._keep_one_family(gift.node)
            return None
        self.in_flight.add(gift[:2])
        return gift._replace(again=True)

    def anew(self, gift: Gift) -> Optional[Gift]:  # noqa: UP045 (nodes may have Python 3.9)
        """Return what is to be tried again as it is due by now: meanwhile another may have these blocks."""
        if gift.asks:
            return gift
        promised = self.arrivals.promised.get(gift.node)
        if promised is None or promised.uid != gift.uid:
            self.in_flight.discard(gift[:2])
            return None
        return gift._replace(blocks=self.allocator.given[gift.node].blocks)

    def _keep_one_family(self, node: str) -> None:
        self._log("the server keeps one block a node: configs of two families give nothing")
        self._promise(self.arrivals.keeps_one_family(node))
        self._judge_again = True

    def _question(self) -> Optional[Gift]:  # noqa: UP045 (nodes may have Python 3.9)
        """Return what is to be asked of a node that waits, while it is open whether others may give to it.

        A config of two families that came first is nobody's measure where a server keeps one; and no node
        for which it is may ever come, that would find that out.
        """
        node = next(iter(self.arrivals.waiting.values()), None)
        open_ = self._in_doubt and self.allocator.dual_stack and not self._keeps_both
        self._asking = open_ and node is not None
        return Gift(node.name, node.uid, PROBE, asks=True) if self._asking and node else None

    def _promise(self, gifts: Gifts) -> None:
        for name, given in gifts.items():
            self._gifts[name] = Gift(name, self.arrivals.promised[name].uid, given.blocks)

    def _take_nodes(self, news: News) -> None:
        if isinstance(news, Changed):
            node = as_node({**news.document, "spec": {}}) if news.gone else self._node(news.document)
            if node is not None:
                self._take_node(node, news.gone, "deletionTimestamp" in news.document["metadata"])
            return
        found = [(self._node(document), document["metadata"]) for document in news.objects]
        self._nodes = {
            node.name: node
            for node, metadata in found
            if node is not None and not self._is_late(node, "deletionTimestamp" in metadata)
        }
        self.allocator.dual_stack, self._keeps_both = True, False  # it may be another server
        if not self._missing:
            self._promise(self.arrivals.listed(self._nodes.values()))
            self._judge_again = True
            self._report()

    def _report(self) -> None:
        others = self.allocator.nodes_of("")
        if others:
            self._log(f"{len(others)} nodes have blocks of no config, and keep them, such as {min(others)}")

    def _take_node(self, node: Node, gone: bool, deleting: bool) -> None:
        known = self._nodes.get(node.name)
        if gone:
            if known is None or known.uid == node.uid:
                self._nodes.pop(node.name, None)
                self._if_ready(lambda: self.arrivals.gone(node.name))
        elif self._is_late(node, deleting):
            self._nodes.pop(node.name, None)
            self._if_ready(lambda: self.arrivals.gone(node.name))
        else:
            self._nodes[node.name] = node
            self._if_ready(lambda: self.arrivals.came(node))

    def _if_ready(self, change: Callable[[], Gifts]) -> None:
        if not self._missing:
            self._promise(change())

    def _is_late(self, node: Node, deleting: bool) -> bool:
        """Whether a node is being deleted that has nothing, and for which nothing is on its way."""
        return deleting and not node.blocks and not self.arrivals.holds(node)

    def _node(self, document: Json) -> Optional[Node]:  # noqa: UP045
        """Return a node; of one whose blocks cannot be read what was known of it, for it has them."""
        try:
            return as_node(document)
        except ValueError as error:
            name, uid = (document["metadata"].get(key) for key in ("name", "uid"))
            self._log(f"node {name}: {error}")
            known = self._nodes.get(name)
            return known if known and known.uid == uid else None

    def _take_configs(self, news: News) -> None:
        documents = self._documents[news.kind]
        if isinstance(news, Listed):
            documents.clear()
            documents.update((kinds.called(one), one) for one in news.objects)
        elif news.gone:
            documents.pop(kinds.called(news.document), None)
        else:
            documents[kinds.called(news.document)] = news.document
        self._judge_again = True

    def _judge(self) -> None:
        """Say of each config whether it gives, and why not."""
        self._judge_again = False
        held = [
            judged(kind, document, self._firsts.get(document["metadata"].get("uid", ""), ""))
            for kind, documents in self._documents.items()
            for _, document in sorted(documents.items())
        ]
        self._firsts = {one.document["metadata"].get("uid", ""): one.first for one in held if one.config}
        self.configs = {one.name: one for one in agreed(held, self._rules, self.allocator.dual_stack)}
        self._in_doubt = any(
            one.reason == checks.MIXED and len(_ranges(one)) == 1 for one in self.configs.values()
        )
        usable = {one.name: one.config for one in self.configs.values() if one.config}
        for name in self.allocator.configs.keys() - usable.keys():
            self.arrivals.config_gone(name)
        for name, config in usable.items():
            self.allocator.add(config)
            self.allocator.withdraw(name, self.configs[name].message)

    def marks(self) -> Iterator[tuple[Held, Json]]:
        """Yield configs whose metadata are to be changed, and into what."""
        for held in self.configs.values():
            ours = FINALIZER in held.finalizers
            if "deletionTimestamp" in held.document["metadata"]:
                if ours and not self.allocator.nodes_of(held.name):
                    yield held, without_mark(held.document)
            elif held.config and not (ours and held.first == annotated(held.document)):
                others = [one for one in held.finalizers if one != FINALIZER]
                yield held, {"finalizers": [*others, FINALIZER], "annotations": {FIRST_SPEC: held.first}}

    def status(self, held: Held, before: Json, now: str) -> Json:
        """Return what a config's status is to be; ``now`` is for what is different from before."""
        nodes = sorted(self.allocator.nodes_of(held.name)) if held.config else []
        free = self.allocator.free(held.name) if held.config and not held.reason else 0
        condition = {"type": READY, **self._condition(held, free, len(nodes))}
        condition["observedGeneration"] = held.document["metadata"].get("generation", 1)
        last: Json = next((one for one in before.get("conditions") or () if one.get("type") == READY), {})
        same = last.get("status") == condition["status"] and "lastTransitionTime" in last
        condition["lastTransitionTime"] = last["lastTransitionTime"] if same else now
        return {
            "given": len(nodes),
            "free": free,
            "nodes": [
                {"name": name, "blocks": [str(block) for block in self.allocator.given[name].blocks]}
                for name in nodes[:MOST_LISTED]
            ],
            "conditions": [condition],
        }

    def _condition(self, held: Held, free: int, given: int) -> Json:
        if held.reason:
            return {"status": "False", "reason": held.reason, "message": held.message}
        config = self.allocator.configs[held.name]
        if len(config.ranges) > 1 and not self.allocator.dual_stack:
            why = self.allocator.refusal(config)
            return {"status": "False", "reason": ONE_FAMILY, "message": why}
        none_of = self._none_of(config)
        if not free:
            waits = sum(config.is_for(node) for node in self.arrivals.waiting.values())
            left = f"no block is left for {waits} that wait" if waits else "no block is left"
            why = f"{left}, {self.allocator.used_up(config)}: make one with another range{none_of}"
            return {"status": "False", "reason": "Exhausted", "message": why}
        listed = f"; status names the first {MOST_LISTED}" if given > MOST_LISTED else ""
        return {
            "status": "True",
            "reason": "Giving",
            "message": f"{given} given, {free} free{listed}{none_of}",
        }

    def _none_of(self, config: Config) -> str:
        """Say of which reserved ranges a config gives nothing, and of one that is for nobody that it is."""
        over = checks.overlapping(config.ranges, self._rules.reserved)
        found = f"; nothing of {', '.join(map(str, over))}, which is reserved" if over else ""
        return f"{found}; {NOBODY}" if config.selector.matches_nothing else found


def without_mark(document: Json) -> Json:
    """Return a config's metadata without what a controller put there."""
    finalizers = [one for one in document["metadata"].get("finalizers") or () if one != FINALIZER]
    return {"finalizers": finalizers, "annotations": {FIRST_SPEC: None}}


def annotated(document: Json) -> str:
    """Return the spec by which a config gave first, as it is written in it; empty if it is not."""
    return str((document["metadata"].get("annotations") or {}).get(FIRST_SPEC, ""))


def judged(kind: str, document: Json, first: str = "") -> Held:
    """Return what a config asks for, and whether it gives, as far as that hangs on nothing else.

    ``first`` is the spec by which it gave first, where that is known better than by what is written in it.
    """
    metadata, spec = document["metadata"], document.get("spec")
    first = first or annotated(document)
    try:
        config = kinds.parse({"metadata": metadata, "spec": json.loads(first) if first else spec})
        first = first or spec_text(spec)
    except RecursionError:  # whoever writes a config may write its annotations
        why = f"metadata.annotations: {FIRST_SPEC} is nested too deeply"
        return Held(kind, document, None, "BadSpec", why)
    except ValueError as error:
        return Held(kind, document, None, "BadSpec", str(error)[:1000])
    if "deletionTimestamp" in metadata:
        return Held(kind, document, config, "Deleting", "is being deleted, and waits for its nodes", first)
    if first != spec_text(spec):
        why = f"its spec was changed, which it must not be: write back {first[:600]}, or make another config"
        return Held(kind, document, config, "SpecChanged", why, first)
    return Held(kind, document, config, first=first)


def agreed(held: Iterable[Held], rules: Rules, dual_stack: bool = True) -> list[Held]:
    """Return configs; those that do not agree with those before them, or with the cluster, give nothing.

    Where a server keeps one family, those of two give nothing anyway, and are in nobody's way.
    """
    held = list(held)
    sound = [one.config for one in sorted(held, key=_turn) if one.config and not one.reason]
    sound = [config for config in sound if dual_stack or len(config.ranges) == 1]
    found = checks.disagreements(sound, *rules)
    return [
        one._replace(reason=found[one.name][0], message=found[one.name][1]) if one.name in found else one
        for one in held
    ]


def _turn(held: Held) -> tuple[str, str]:
    return str(held.document["metadata"].get("creationTimestamp", "")), held.name


def _ranges(held: Held) -> tuple[Range, ...]:
    return held.config.ranges if held.config else ()


def spec_text(spec: object) -> str:
    """Return a spec as one text; equal specs have the same."""
    return json.dumps(spec, sort_keys=True, separators=(",", ":"))
