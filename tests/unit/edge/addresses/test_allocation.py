"""Which block a node gets; rows are of Kubernetes' tests of its allocator (1.25 to 1.28) and the vendor's."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from edge.addresses.allocation import Allocator, Config, NoBlockError, Node, Range
from edge.addresses.selectors import Requirement, Selector
from edge.addresses.space import Network

Told = tuple[str, str]  # network/mask by family, and the labels that a node must have


def config(name: str, ranges: str, labels: str = "") -> Config:
    """Return a config like ``10.0.0.0/8:24 fd00::/112:120``, for nodes with labels like ``a=1,b=2``."""
    made = []
    for text in ranges.split():
        network, _, mask = text.rpartition(":")
        made.append(Range(ip_network(network), int(mask)))
    pairs = [label.split("=") for label in labels.split(",") if label]
    wanted = [Requirement(key, "In", (value,)) for key, value in pairs]
    return Config(name, tuple(made), Selector(tuple(wanted)))


def networks(texts: str) -> tuple[Network, ...]:
    return tuple(map(ip_network, texts.split()))


LABELS = {
    "l0": "1",
    "l1": "1",
    "l2": "1",
    "kubernetes.io/hostname": "node-1",
    "node.kubernetes.io/instance-type": "medium",
}
ROWS = {
    "one": ([("127.123.234.0/24:30", "l0=1")], "", "", "127.123.234.0/30"),
    "services": ([("127.123.234.0/24:30", "l0=1")], "127.123.234.0/26", "", "127.123.234.64/30"),
    "taken": (
        [("127.123.234.0/24:30", "l0=1")],
        "127.123.234.0/26",
        "127.123.234.64/30 127.123.234.68/30 127.123.234.72/30 127.123.234.80/30",
        "127.123.234.76/30",
    ),
    "more labels": (
        [
            ("10.0.0.0/8:24 ace:cab:deca::/112:120", "l0=1"),
            ("127.0.0.0/8:24 abc:def:deca::/112:120", "l0=1,l1=1"),
        ],
        "",
        "",
        "127.0.0.0/24 abc:def:deca::/120",
    ),
    "overlapping": (
        [
            ("10.0.0.0/8:24 ace:cab:deca::/112:120", "l0=1"),
            ("10.0.0.0/16:24 ace:cab:deca::/112:120", "l0=1,l1=1"),
        ],
        "",
        "10.0.0.0/24 10.0.1.0/24 10.0.2.0/24 10.0.4.0/24 ace:cab:deca::/120",
        "10.0.3.0/24 ace:cab:deca::100/120",
    ),
    "fewest possible": (
        [("127.0.0.0/8:24", "l0=1,l1=1"), ("10.0.0.0/24:24 ace:cab:deca::/120:120", "l0=1,l1=1")],
        "",
        "",
        "10.0.0.0/24 ace:cab:deca::/120",
    ),
    "fewest of either family": (
        [("127.123.234.0/23:24", "l0=1,l1=1"), ("10.0.0.0/16:24 ace:cab:deca::/120:120", "l0=1,l1=1")],
        "",
        "",
        "10.0.0.0/24 ace:cab:deca::/120",
    ),
    "smaller block": (
        [("127.0.0.0/24:24", "l0=1,l1=1"), ("10.0.0.0/32:32", "l0=1,l1=1")],
        "",
        "",
        "10.0.0.0/32",
    ),
    "smaller text": (
        [("127.0.0.0/16:24", "l0=1,l2=1"), ("127.1.0.0/16:24", "l0=1,l1=1")],
        "",
        "",
        "127.1.0.0/24",
    ),
    "smaller address": ([("127.123.0.0/16:24", "l0=1"), ("10.0.0.0/16:24", "l0=1")], "", "", "10.0.0.0/24"),
    "no double counting": ([("10.10.0.0/22:24", "")], "", "10.10.0.0/24 10.10.2.0/24", "10.10.1.0/24"),
    "the vendor's: labels": (
        [
            ("10.0.0.0/16:24", "node.kubernetes.io/instance-type=medium"),
            ("10.1.0.0/16:24", "kubernetes.io/hostname=node-1"),
        ],
        "",
        "",
        "10.1.0.0/24",
    ),
    "the vendor's: addresses": ([("192.168.0.0/16:24", ""), ("10.0.0.0/16:24", "")], "", "", "10.0.0.0/24"),
    "the vendor's: sizes": ([("192.168.0.0/20:25", ""), ("10.0.0.0/22:27", "")], "", "", "10.0.0.0/27"),
    "the vendor's: possible": ([("192.168.0.0/20:22", ""), ("200.0.0.0/16:16", "")], "", "", "200.0.0.0/16"),
    "a number, not a text": ([("10.0.0.0/16:24", ""), ("9.0.0.0/16:24", "")], "", "", "9.0.0.0/24"),
}


@pytest.mark.parametrize(("configs", "reserved", "taken", "due"), ROWS.values(), ids=ROWS.keys())
def test_a_node_gets_the_block_that_the_rules_say(
    configs: list[Told], reserved: str, taken: str, due: str
) -> None:
    allocator = Allocator(networks(reserved))
    for number, (ranges, labels) in enumerate(configs):
        allocator.add(config(f"config-{number}", ranges, labels))
    for number, block in enumerate(networks(taken)):
        allocator.occupy(Node(f"old-{number}", {}, (block,)))
    assert allocator.allocate(Node("node-1", LABELS)).blocks == networks(due)


def test_what_is_exhausted_gives_nothing_until_a_block_is_free() -> None:
    allocator = Allocator()
    allocator.add(config("small", "127.123.234.0/28:30"))
    for number in range(4):
        allocator.allocate(Node(f"node-{number}", {}))
    with pytest.raises(NoBlockError, match="small has no block left: 4 nodes have one of 4"):
        allocator.allocate(Node("late", {}))
    allocator.release("node-1")
    assert allocator.allocate(Node("late", {})).blocks == networks("127.123.234.4/30")


def test_both_families_or_neither() -> None:
    allocator = Allocator()
    allocator.add(config("both", "10.0.0.0/16:24 fd00::/119:120"))
    for number in range(2):
        allocator.allocate(Node(f"node-{number}", {}))
    before = allocator.free("both")
    with pytest.raises(NoBlockError):
        allocator.allocate(Node("late", {}))
    allocator.release("node-0")
    assert (before, allocator.allocate(Node("late", {})).blocks) == (0, networks("10.0.0.0/24 fd00::/120"))
