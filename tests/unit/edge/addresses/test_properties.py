"""What holds whatever configs and nodes come and go, against a count that tries every block there is.

A case is bytes, three an event, so that what hypothesis finds is made short. Ranges are small: they overlap,
and are used up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from ipaddress import ip_network
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.addresses.allocation import Allocator, Config, Node, Range
from edge.addresses.arrivals import Arrivals, Gifts
from edge.addresses.selectors import Requirement, Selector
from edge.addresses.space import Network
from tests import cases

pytestmark = pytest.mark.long

CASES = cases.count("CONCORDE_ADDRESS_CASES", 2000, 200_000)
AT_ONCE = 10  # that hypothesis makes: of one it would take as long as is taken for what is asked of it

Labels = Mapping[str, str]


class Asked(NamedTuple):
    """A selector, its text, and how many of its requirements labels meet; None: it is not for them."""

    selector: Selector
    text: str
    matched: Callable[[Labels], int | None]


def requirement(key: str, operator: str, *values: str) -> Requirement:
    return Requirement(key, operator, values)


SMALL, RACK = requirement("size", "In", "small"), requirement("rack", "Exists")
ASKED = [
    Asked(Selector(), "", lambda _: 0),
    Asked(Selector((SMALL,)), "size=small", lambda one: 1 if one.get("size") == "small" else None),
    Asked(Selector((RACK,)), "rack", lambda one: 1 if "rack" in one else None),
    Asked(
        Selector((SMALL,), ((RACK, requirement("rack", "Gt", "3")), (requirement("rack", "Lt", "9"),))),
        "size=small or rack,rack>3 or rack<9",
        lambda one: (
            None
            if one.get("size") != "small" or "rack" not in one
            else 3
            if int(one["rack"]) > 3
            else 2
            if int(one["rack"]) < 9
            else None
        ),
    ),
    Asked(
        Selector((), ((requirement("size", "NotIn", "small"), requirement("rack", "DoesNotExist")), ())),
        "!rack,size notin (small)",
        lambda one: 2 if one.get("size") != "small" and "rack" not in one else None,
    ),
    Asked(Selector((), ((),)), "", lambda _: None),
    Asked(
        Selector((), ((requirement("metadata.name", "In", "n1", "n2"),),)),
        "metadata.name in (n1,n2)",
        lambda one: 1 if one["metadata.name"] in ("n1", "n2") else None,
    ),
]
LABELS: list[Labels] = [
    {},
    {"size": "small"},
    {"rack": "1"},
    {"size": "small", "rack": "9"},
    {"size": "large"},
]
RANGES = [
    "10.0.0.0/28:30",
    "10.0.0.0/27:30",
    "10.0.0.0/27:29",
    "10.0.0.16/28:28",
    "9.0.0.0/29:30",
    "10.0.0.0/28:30 fd00::/125:126",
    "10.0.0.16/28:29 fd00::/124:125",
    "fd00::/124:126",
]
BLOCKS = ["10.0.0.4/30", "10.0.0.0/29", "10.0.0.0/26", "9.0.0.0/32", "192.168.0.0/24", "fd00::/127"]
RESERVED = ip_network("10.0.0.12/31")
FULL = {4: 32, 6: 128}


def ranges(texts: str) -> tuple[Range, ...]:
    parts = [text.rpartition(":") for text in texts.split()]
    return tuple(Range(ip_network(network), int(mask)) for network, _, mask in parts)


ADDRESSES = sorted(
    {(one.version, int(address)) for text in RANGES for one, _ in ranges(text) for address in one}
)


@cache
def bits(*blocks: Network) -> int:
    """Return which of the ranges' addresses are in blocks: a bit each."""
    spans = [(one.version, int(one.network_address), int(one.broadcast_address)) for one in blocks]
    return sum(
        1 << number
        for number, (version, address) in enumerate(ADDRESSES)
        if any(version == of and first <= address <= last for of, first, last in spans)
    )


@cache
def blocks_of(one: Range) -> list[tuple[Network, int]]:
    return [(block, bits(block)) for block in one.network.subnets(new_prefix=one.mask)]


class Cluster:
    """An API with configs and nodes, and beside it a count of what each node is due."""

    def __init__(self) -> None:
        self.asked: dict[str, Asked] = {}
        self.configs: dict[str, Config] = {}
        self.withdrawn: set[str] = set()
        self.nodes: dict[str, Node] = {}
        self.has: dict[str, tuple[Network, ...]] = {}
        self.taken = {"": bits(RESERVED)}  # the addresses of what nodes have
        self.foreign: set[str] = set()
        self.arrivals = self.started()
        self.clock = 0

    def started(self) -> Arrivals:
        """Return a new program's, which knows what the API has."""
        arrivals = Arrivals(Allocator([RESERVED]))
        for name, config in self.configs.items():
            arrivals.allocator.add(config)
            if name in self.withdrawn:
                arrivals.allocator.withdraw(name, "is being deleted")
        return arrivals

    def due(self, node: Node) -> tuple[str, tuple[Network, ...]] | None:
        """Return what a node is due, by trying every block of every config."""
        labels = {**node.labels, "metadata.name": node.name}
        found = []
        for name, config in self.configs.items():
            matched = self.asked[name].matched(labels)
            if matched is not None and name not in self.withdrawn:
                first = config.ranges[0]
                possible = min(2 ** (one.mask - one.network.prefixlen) for one in config.ranges)
                block = 2 ** (FULL[first.network.version] - first.mask)
                address = int(first.network.network_address)
                found.append((-matched, possible, block, self.asked[name].text, address, name))
        for *_, name in sorted(found):
            free = [self.free(one) for one in self.configs[name].ranges]
            if all(free):
                return name, tuple(blocks[0] for blocks in free)
        return None

    def free(self, one: Range) -> list[Network]:
        taken = 0
        for addresses in self.taken.values():
            taken |= addresses
        return [block for block, addresses in blocks_of(one) if not addresses & taken]

    def takes(self, name: str, blocks: tuple[Network, ...]) -> None:
        self.has[name], self.taken[name] = blocks, bits(*blocks)

    def check(self, gifts: Gifts) -> None:
        """See that all were given what they are due, in turn, and that nobody who waits is due anything."""
        turns = []
        for name, gift in gifts.items():
            if name not in self.has:
                turns.append(self.nodes[name].turn)
                assert (gift.config, gift.blocks) == self.due(self.nodes[name])
                self.takes(name, gift.blocks)
        assert turns == sorted(turns)
        allocator = self.arrivals.allocator
        assert {name: one.blocks for name, one in allocator.given.items()} == self.has
        assert self.arrivals.waiting.keys() == self.nodes.keys() - self.has.keys()
        assert not any(self.due(node) for node in self.arrivals.waiting.values())
        for name, config in self.configs.items():
            assert allocator.free(name) == min(len(self.free(one)) for one in config.ranges)
        nodes = [name for name in [*self.configs, ""] for name in allocator.nodes_of(name)]
        assert sorted(nodes) == sorted(self.has)

    def written(self) -> None:
        """Let the API have what was given."""
        for name in list(self.arrivals.promised):
            self.nodes[name] = self.nodes[name]._replace(blocks=self.has[name])
            self.check(self.arrivals.came(self.nodes[name]))

    def restart(self) -> None:
        """See that a new program gives nobody anything else."""
        self.written()
        before = {name: one.config for name, one in self.arrivals.allocator.given.items()}
        self.arrivals = self.started()
        assert self.arrivals.listed(self.nodes.values(), before) == {}
        self.check({})
        assert {name: one.config for name, one in self.arrivals.allocator.given.items()} == before

    def event(self, kind: int, first: int, second: int) -> None:
        name = f"n{first % 8}"
        if kind == 0:
            self.config(f"c{first % 4}", RANGES[second % len(RANGES)], ASKED[first % len(ASKED)])
        elif kind == 1 and f"c{first % 4}" in self.configs:
            self.withdrawn.add(f"c{first % 4}")
            self.arrivals.allocator.withdraw(f"c{first % 4}", "is being deleted")
            self.check({})
        elif kind == 2:
            self.gone(name)
        elif kind == 3:
            block = (ip_network(BLOCKS[second % len(BLOCKS)]),)
            self.foreign.add(name)
            self.node(name, {}, block)
        elif kind == 4:
            self.restart()
        elif kind == 5:
            self.written()
            self.check(self.arrivals.listed(self.nodes.values()))
        else:
            self.node(name, LABELS[second % len(LABELS)], ())

    def config(self, name: str, texts: str, asked: Asked) -> None:
        config = Config(name, ranges(texts), asked.selector)
        if name in self.configs:
            self.arrivals.config_gone(name)
        self.withdrawn.discard(name)
        self.asked[name], self.configs[name] = asked, config
        self.check(self.arrivals.config_came(config))

    def node(self, name: str, labels: Labels, blocks: tuple[Network, ...]) -> None:
        """Let a node come, or have other labels; one that is there keeps its blocks."""
        self.clock += 1
        there = self.nodes.get(name)
        if there is None:
            self.nodes[name] = Node(name, labels, blocks, f"{self.clock // 3:04}")
            if blocks:
                self.takes(name, blocks)
        else:
            self.nodes[name] = there._replace(labels=labels)
        self.check(self.arrivals.came(self.nodes[name]))

    def gone(self, name: str) -> None:
        self.nodes.pop(name, None)
        self.has.pop(name, None)
        self.taken.pop(name, None)
        self.foreign.discard(name)
        self.check(self.arrivals.gone(name))

    def last(self) -> None:
        """See that what is taken back is given again, and that then nothing is left of it."""
        allocator, node = self.arrivals.allocator, Node("last", {"size": "small"})
        before = [allocator.free(name) for name in self.configs]
        offered = allocator.offer(node)
        for _ in range(2):
            if offered:
                assert allocator.allocate(node) == offered
            allocator.release("last")
            assert [allocator.free(name) for name in self.configs] == before


@settings(max_examples=max(1, CASES // AT_ONCE))
@given(st.lists(st.binary(min_size=24, max_size=60), min_size=AT_ONCE, max_size=AT_ONCE))
def test_whatever_comes_and_goes(cases_at_once: list[bytes]) -> None:
    for case in cases_at_once:
        cluster = Cluster()
        for at in range(0, len(case) - 2, 3):
            cluster.event(case[at] % 12, case[at + 1], case[at + 2])
        cluster.restart()
        cluster.last()
