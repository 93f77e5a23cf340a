"""Whose turn it is: nodes and configs as they come and go, who is given what of it, and who waits.

Pure: whoever watches an API tells what it sees, and writes down what is given. What nodes have already is
taken first, wherever it lies; the others are served by creation, then name. One that comes later is served
as it comes, and who waits is served as soon as there is something for him, so nobody who waits could be
given anything. A restart therefore changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from ipaddress import ip_network
from typing import Any

from edge.addresses.allocation import Allocator, Config, Given, Node
from edge.addresses.space import Network

Gifts = dict[str, Given]  # to which node what; to be written into its object


class Arrivals:
    """The nodes of one cluster; each call returns what is given because of it.

    ``promised`` is what was given and is not seen in a node's object yet: after an answer that did not come
    it is written again, and it stays that node's until the node is gone. So is what was seen there and is not
    any more, in a store that was restored from a backup: pods have these addresses.
    """

    def __init__(self, allocator: Allocator) -> None:
        self.allocator = allocator
        self.promised: dict[str, Node] = {}
        self.waiting: dict[str, Node] = {}
        self._holders: dict[str, str] = {}  # by name the uid of who has what is given

    def listed(self, nodes: Iterable[Node], of: Mapping[str, str] = {}) -> Gifts:
        """Serve a whole new list; what was promised and is not written there is returned once more.

        ``of`` says of which config nodes have theirs, as far as that is written somewhere; for others the
        best config that has such a block is taken.
        """
        there = {node.name: node for node in nodes}
        for name in [*self.allocator.given, *self.waiting]:
            if name not in there:
                self._forget(name)
        for node in there.values():
            if node.blocks:
                self._has(node, of.get(node.name, ""))
        for node in there.values():
            if not node.blocks:
                self._asks(node)
        self.serve()
        return {name: self.allocator.given[name] for name in self.promised}

    def came(self, node: Node) -> Gifts:
        """Serve a node that is new, or is changed."""
        known = self.allocator.given.get(node.name)
        if not node.blocks and known is None:
            self.waiting[node.name] = node
            return self._give(node)
        if known is not None and known.blocks == node.blocks:
            self._has(node)
            return {}
        if not node.blocks and self._is_promised(node):
            return {}
        if node.blocks:
            self._has(node)
        else:
            self._asks(node)
        again = {node.name: known} if known and node.name in self.promised else {}
        return {**again, **self.serve()} if known else {}

    def gone(self, name: str) -> Gifts:
        """Take back what a node had that is not there any more; one that is being deleted still is."""
        had = name in self.allocator.given
        self._forget(name)
        return self.serve() if had else {}

    def config_came(self, config: Config) -> Gifts:
        """Give blocks of a config, too."""
        self.allocator.add(config)
        return self.serve()

    def config_gone(self, name: str) -> None:
        """Forget a config; before that it waits for ``allocator.nodes_of`` it, withdrawn."""
        self.allocator.remove(name)

    def keeps_one_family(self, name: str) -> Gifts:
        """Learn that the server keeps one block a node; what a node was promised it did not get."""
        self.allocator.dual_stack = False
        node = self.promised.get(name)
        if node is not None:
            self._forget(name)
            self.waiting[name] = node
        return self.serve()

    def why(self, name: str) -> str:
        """Return why a node waits, config by config, and what would help."""
        return self.allocator.why_not(self.waiting[name])

    def holds(self, node: Node) -> bool:
        """Whether something was given to this very node, written or not."""
        return bool(node.uid) and self._holders.get(node.name) == node.uid

    def _has(self, node: Node, of: str = "") -> None:
        self.waiting.pop(node.name, None)
        self.promised.pop(node.name, None)
        self._holders[node.name] = node.uid
        known = self.allocator.given.get(node.name)
        if known is None or known.blocks != node.blocks:
            self.allocator.occupy(node, of)

    def _asks(self, node: Node) -> None:
        """Let a node wait, unless something is promised to it, or was its own and nobody else has it.

        What another of its name had is free.
        """
        if (self._is_promised(node) or self.holds(node)) and self.allocator.has_alone(node.name):
            self.promised[node.name] = node
            return
        self._forget(node.name)
        self.waiting[node.name] = node

    def _is_promised(self, node: Node) -> bool:
        promised = self.promised.get(node.name)
        return promised is not None and (promised.created, promised.uid) == (node.created, node.uid)

    def _forget(self, name: str) -> None:
        self.waiting.pop(name, None)
        self.promised.pop(name, None)
        self._holders.pop(name, None)
        self.allocator.release(name)

    def serve(self) -> Gifts:
        """Give to those who wait, in their order, until there is nothing to give."""
        gifts: Gifts = {}
        for node in sorted(self.waiting.values(), key=lambda one: one.turn):
            gift = self._give(node)
            gifts.update(gift)
            if not gift and not self.allocator.has_blocks():
                break
        return gifts

    def _give(self, node: Node) -> Gifts:
        offered = self.allocator.offer(node)
        if offered is None:
            return {}
        del self.waiting[node.name]
        self.promised[node.name] = node
        self._holders[node.name] = node.uid
        return {node.name: self.allocator.occupy(node._replace(blocks=offered.blocks), offered.config)}


def as_node(written: Mapping[str, Any]) -> Node:
    """Return what a Node object says. Raises ValueError for a block that no API takes."""
    metadata = written["metadata"]
    return Node(
        metadata["name"],
        metadata.get("labels") or {},
        tuple(map(block, written_blocks(written))),
        metadata.get("creationTimestamp") or "",
        metadata.get("uid") or "",
    )


def written_blocks(node: Mapping[str, Any]) -> list[str]:
    """Return the blocks that stand in a Node object, as they are written there."""
    spec = node.get("spec") or {}
    return list(spec.get("podCIDRs") or [one for one in [spec.get("podCIDR")] if one])


def block(text: str) -> Network:
    """Return a block as it is written in a Node object.

    Bits set behind the prefix are not looked at, and leading zeros are decimal: an API before Kubernetes 1.22
    takes both. Raises ValueError for what no API takes.
    """
    return ip_network(text if ":" in text else re.sub(r"\b0+(?=\d)", "", text), strict=False)
