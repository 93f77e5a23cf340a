"""What the nodes of a cluster have of its ranges, how many more fit, and what one block size would have cost.

Pure, and the same of a scenario and of a cluster that exists. Of the future nothing is guessed: nodes that
come are given what nodes that are there would be given, by the same allocator.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple, Optional

from edge.addresses.allocation import Allocator, Node
from edge.addresses.selectors import NAME_FIELD
from edge.addresses.space import Network

# No more nodes than this are tried one by one until a config runs out; Kubernetes has at most 5,000 (v1.20,
# "Considerations for large clusters").
MOST_NODES = 10_000
# Addresses of a block that no pod gets: the network's own, the gateway's, and the broadcast's.
NOT_FOR_PODS = 3


@dataclass(frozen=True)
class Inventory:
    """A cluster's allocator, its nodes in their order, and how many pods have addresses on each.

    Nothing is given while it is looked at: what takes long to be told is found out once.
    """

    cluster: str
    allocator: Allocator
    nodes: Sequence[Node]
    pods: Mapping[str, int]
    waiting: Mapping[str, str] = field(default_factory=dict)  # nodes without a block, and why
    notes: Sequence[str] = ()  # what else is to be said

    @cached_property
    def kinds(self) -> list[Kind]:
        """Its kinds of nodes."""
        return kinds(self)

    @cached_property
    def first_out(self) -> Optional[RunsOut]:  # noqa: UP045 (nodes may have Python 3.9)
        """Which of its configs runs out first."""
        return runs_out_first(self)

    def rows(self) -> list[Row]:
        """Return a row for each node."""
        given = self.allocator.given
        return [
            Row(
                node.name,
                given[node.name].config if node.name in given else "",
                given[node.name].blocks if node.name in given else (),
                self.pods.get(node.name, 0),
                self.waiting.get(node.name, ""),
            )
            for node in self.nodes
        ]


class Row(NamedTuple):
    """What one node has, and of which config; no config: it had that before, or it has nothing."""

    node: str
    config: str
    blocks: tuple[Network, ...]
    pods: int
    waits: str  # why it has nothing; empty if it has

    @property
    def room(self) -> int:
        """How many pods its blocks have addresses for."""
        return min((block.num_addresses - NOT_FOR_PODS for block in self.blocks), default=0)


class Kind(NamedTuple):
    """Nodes that ask the same configs in the same order; ``nodes`` may be none, of a config for others."""

    configs: tuple[str, ...]
    example: Node
    nodes: tuple[str, ...]
    fits: int  # how many more of them, if no others come; those that wait among them


class RunsOut(NamedTuple):
    """Which config is the first without a block for a node that would be given one of it now.

    Before that ``nodes`` more get theirs; without a config none runs out before so many.
    """

    config: str
    nodes: int


class Saving(NamedTuple):
    """Addresses of one family: what nodes have, and what all would have with the largest block of them."""

    version: int
    mask: int  # of the largest block
    nodes: int
    given: int
    alike: int

    @property
    def share(self) -> float:
        """The share of addresses that is saved, from 0 to 1."""
        return 1 - self.given / self.alike


def kinds(inventory: Inventory) -> list[Kind]:
    """Return the kinds of nodes that there are, then those that a config is for and that are not there."""
    found: dict[tuple[str, ...], list[Node]] = {}
    for node in inventory.nodes:
        found.setdefault(_asked(inventory.allocator, node), []).append(node)
    there = {configs[0] for configs in found if configs}
    others: dict[tuple[str, ...], Node] = {}
    for name, config in inventory.allocator.configs.items():
        labels = config.selector.example()
        if name not in there and labels is not None:
            node = Node(labels.pop(NAME_FIELD, ""), labels)
            if asked := _asked(inventory.allocator, node):
                others.setdefault(asked, node)
    return [
        *(_kind(inventory, configs, nodes[0], nodes) for configs, nodes in found.items()),
        *(_kind(inventory, configs, node, ()) for configs, node in others.items() if configs not in found),
    ]


def _asked(allocator: Allocator, node: Node) -> tuple[str, ...]:
    return tuple(config.name for config in allocator.giving(node))


def _kind(inventory: Inventory, configs: tuple[str, ...], example: Node, nodes: Sequence[Node]) -> Kind:
    names = tuple(node.name for node in nodes)
    return Kind(configs, example, names, inventory.allocator.fitting(example))


def runs_out_first(inventory: Inventory, most: int = MOST_NODES) -> Optional[RunsOut]:  # noqa: UP045
    """Return which config runs out first if nodes come in the proportion in which they are there.

    None if there is no node that could be given anything. Of a kind with w nodes the j-th comes at the time
    (j - 1/2) / w, so that each comes as evenly as it can (as seats are shared by Sainte-Laguë).
    """
    allocator = deepcopy(inventory.allocator)
    present = [kind for kind in inventory.kinds if kind.nodes and kind.fits]
    offers = [allocator.offer(kind.example) for kind in present]
    now = [offered.config for offered in offers if offered]
    coming = [(Fraction(1, 2 * len(kind.nodes)), number) for number, kind in enumerate(present)]
    heapq.heapify(coming)
    for came in range(most if present else 0):
        time, number = coming[0]
        offered = allocator.offer(present[number].example)
        if offered is None or offered.config != now[number]:
            return RunsOut(now[number], came)
        allocator.occupy(Node(f"{came}/", {}, offered.blocks), offered.config)
        heapq.heapreplace(coming, (time + Fraction(1, len(present[number].nodes)), number))
    return RunsOut("", most) if present else None


def savings(inventory: Inventory) -> list[Saving]:
    """Return what blocks of different size save, for each family of which a node has one."""
    found = []
    for version in (4, 6):
        blocks = [one for row in inventory.rows() for one in row.blocks if one.version == version]
        if blocks:
            largest = max(blocks, key=lambda one: one.num_addresses)
            given = sum(one.num_addresses for one in blocks)
            alike = largest.num_addresses * len(blocks)
            found.append(Saving(version, largest.prefixlen, len(blocks), given, alike))
    return found
