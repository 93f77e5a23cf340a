"""Which block a node gets; rows are of Kubernetes' tests of its allocator (1.25 to 1.28) and the vendor's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from ipaddress import ip_network

import pytest

from edge.addresses.allocation import Allocator, Config, Given, NoBlockError, Node, Range
from edge.addresses.arrivals import as_node
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
    "no selector comes last": (
        [("10.0.0.0/24:24", ""), ("10.1.0.0/16:24", "l0=1")],
        "",
        "",
        "10.1.0.0/24",
    ),
    "what is possible, not what is free": (
        [("10.0.0.0/16:24", ""), ("10.1.0.0/22:24", "")],
        "",
        "10.1.0.0/24 10.1.1.0/24 10.1.2.0/24",
        "10.1.3.0/24",
    ),
    "the next best": (
        [("10.0.0.0/16:24", ""), ("10.1.0.0/23:24", "l0=1")],
        "",
        "10.1.0.0/24 10.1.1.0/24",
        "10.0.0.0/24",
    ),
    "the next best, of one family": (
        [("10.0.0.0/16:24 fd00::/112:120", ""), ("10.1.0.0/16:24 fd01::/119:120", "l0=1")],
        "",
        "fd01::/120 fd01::100/120",
        "10.0.0.0/24 fd00::/120",
    ),
    "the smaller block, of IPv6": ([("fd00::/112:120", ""), ("fd01::/116:124", "")], "", "", "fd01::/124"),
    "IPv6's address, without IPv4": ([("fd01::/112:120", ""), ("fd00::/112:120", "")], "", "", "fd00::/120"),
    "IPv4's address, with IPv6": (
        [("10.1.0.0/16:24 fd00::/112:120", ""), ("10.0.0.0/16:24 fd01::/112:120", "")],
        "",
        "",
        "10.0.0.0/24 fd01::/120",
    ),
    "a larger one around": ([("10.0.0.0/16:24", "")], "", "10.0.0.0/20", "10.0.16.0/24"),
    "smaller ones within": ([("10.0.0.0/16:24", "")], "", "10.0.0.9/32 10.0.1.128/25", "10.0.2.0/24"),
    "both ends": ([("10.0.0.0/28:30", "")], "", "10.0.0.0/30 10.0.0.12/30", "10.0.0.4/30"),
    "one of one": ([("10.0.0.0/30:30", "")], "", "10.0.0.4/30 9.255.255.252/30", "10.0.0.0/30"),
    "one of one, of IPv6": ([("fd00::/126:126", "")], "", "fd00::4/126", "fd00::/126"),
    "the last of 2 to the 16": ([("fd00::/110:126", "")], "fd00::/111 fd00::2:0/112", "", "fd00::3:0/126"),
    "an end of all": ([("255.255.255.248/29:30", "")], "255.255.255.248/30", "", "255.255.255.252/30"),
    "a number, not a text": ([("10.0.0.0/16:24", ""), ("9.0.0.0/16:24", "")], "", "", "9.0.0.0/24"),
}


@pytest.mark.parametrize(("configs", "reserved", "taken", "due"), ROWS.values(), ids=ROWS.keys())
def test_a_node_gets_the_block_that_the_rules_say(
    configs: list[Told], reserved: str, taken: str, due: str
) -> None:
    allocator = Allocator(networks(reserved))
    for number, (ranges, labels) in enumerate(configs):
        allocator.add(config(f"config-{number}", ranges, labels))
    for number, block in enumerate(networks(taken)):  # some of families, masks and places of no config
        allocator.occupy(Node(f"old-{number}", {}, (block,)))
    assert allocator.allocate(Node("node-1", LABELS)).blocks == networks(due)


def test_what_is_exhausted_gives_nothing_until_a_block_is_free() -> None:
    allocator = Allocator()
    allocator.add(config("small", "127.123.234.0/28:30"))
    for number in range(4):
        allocator.allocate(Node(f"node-{number}", {}))
    with pytest.raises(
        NoBlockError, match="small has no block left, 4 of 4 given: make one with another range"
    ):
        allocator.allocate(Node("late", {}))
    allocator.release("node-1")
    assert allocator.allocate(Node("late", {})).blocks == networks("127.123.234.4/30")


def test_an_equal_config_comes_by_its_name() -> None:
    allocator = Allocator()
    for name in ("b", "a", "c"):
        allocator.add(config(name, "10.0.0.0/16:24"))
    assert allocator.allocate(Node("node", {})).config == "a"


def test_of_terms_the_most_specific_that_is_met_counts() -> None:
    allocator = Allocator()
    one, two, three = (Requirement(key, "Exists") for key in ("l0", "l1", "l2"))
    never = Requirement("absent", "Exists")
    terms = Selector((), ((one, never), (two,), (one, two, three)))
    allocator.add(config("two", "10.0.0.0/24:24", "l0=1,l1=1"))
    allocator.add(Config("three", (Range(ip_network("10.1.0.0/16"), 24),), terms))
    assert allocator.allocate(Node("all", LABELS)).config == "three"
    assert allocator.allocate(Node("two", {"l0": "1", "l1": "1"})).config == "two"
    assert allocator.allocate(Node("one", {"l1": "0"})).config == "three"


def test_bits_behind_the_prefix_of_a_nodes_block_are_not_looked_at() -> None:
    allocator = Allocator()
    allocator.add(config("all", "10.10.0.0/16:24"))
    old = as_node({"metadata": {"name": "old"}, "spec": {"podCIDR": "10.10.0.1/24"}})
    assert allocator.occupy(old) == Given("all", networks("10.10.0.0/24"))
    assert allocator.allocate(Node("new", {})).blocks == networks("10.10.1.0/24")


def test_nodes_give_back_what_they_had_whatever_their_labels_are_now() -> None:
    allocator = Allocator()
    allocator.add(config("small", "10.0.0.0/30:30", "size=small"))
    allocator.allocate(Node("node", {"size": "small"}))
    assert allocator.allocate(Node("node", {"size": "large"})).blocks == networks("10.0.0.0/30")
    allocator.release("node")
    assert allocator.allocate(Node("other", {"size": "small"})).blocks == networks("10.0.0.0/30")


def test_a_block_of_any_config_is_not_given_by_another() -> None:
    allocator = Allocator()
    allocator.add(config("wide", "10.0.0.0/16:20", "size=large"))
    allocator.add(config("narrow", "10.0.0.0/16:28"))
    assert allocator.allocate(Node("large", {"size": "large"})).blocks == networks("10.0.0.0/20")
    assert allocator.allocate(Node("small", {})).blocks == networks("10.0.16.0/28")
    assert allocator.allocate(Node("larger", {"size": "large"})).blocks == networks("10.0.32.0/20")


def test_a_server_of_one_family_gets_nothing_of_two_and_is_told_which_gate() -> None:
    allocator = Allocator(dual_stack=False)
    allocator.add(config("both", "10.0.0.0/16:24 fd00::/112:120", "l0=1"))
    with pytest.raises(NoBlockError, match=r"both is for IPv4 and IPv6, .* the feature gate IPv6DualStack"):
        allocator.allocate(Node("node", LABELS))
    allocator.add(config("one", "10.1.0.0/16:24"))
    assert allocator.allocate(Node("node", LABELS)).blocks == networks("10.1.0.0/24")


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


def test_of_many_configs_only_those_are_asked_that_want_a_label_of_the_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    allocator, asked = Allocator(), []
    for number in range(100):
        allocator.add(config(f"c{number}", f"10.{number}.0.0/16:24", f"rack=r{number},size=small"))
    allocator.add(config("all", "11.0.0.0/16:24"))
    matched = Selector.matched

    def counted(selector: Selector, labels: Mapping[str, str]) -> int | None:
        asked.append(str(selector))
        return matched(selector, labels)

    monkeypatch.setattr(Selector, "matched", counted)
    assert allocator.allocate(Node("a", {"rack": "r7", "size": "small"})).config == "c7"
    assert allocator.allocate(Node("b", {"rack": "r7", "size": "large"})).config == "all"
    assert Counter(asked) == {"rack=r7,size=small": 2, "": 2}
