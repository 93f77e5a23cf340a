"""What is said across configs that are sound each by itself."""

from __future__ import annotations

import pytest

from edge.addresses import checks
from edge.addresses.allocation import Allocator, Node
from tests.unit.edge.addresses.test_allocation import config, networks

ONE = config("one", "10.0.0.0/16:24")
BOTH = config("both", "10.0.0.0/16:24 fd00::/112:120")
SIX = config("six", "fd01::/112:120")


def test_of_one_cluster_all_have_both_families_or_none() -> None:
    assert list(checks.mixed([ONE, SIX])) == []
    assert list(checks.mixed([BOTH, BOTH])) == []
    end = "which comes first: of one cluster all have both, or none"
    assert list(checks.mixed([BOTH, ONE, BOTH, SIX])) == [
        ("one", f"must have IPv6 too, as both has, {end}"),
        ("six", f"must have IPv4 too, as both has, {end}"),
    ]
    assert list(checks.mixed([ONE, BOTH, SIX])) == [("both", f"must have IPv4 alone, as one has, {end}")]
    assert list(checks.mixed([SIX, BOTH])) == [("both", f"must have IPv6 alone, as six has, {end}")]


def test_where_packets_are_wrapped_all_dual_configs_have_one_range_and_mask() -> None:
    again = config("again", "10.0.0.0/16:24 fd02::/112:120")
    assert list(checks.unlike([ONE, BOTH, again, SIX])) == []
    for other in ("10.0.0.0/16:25 fd02::/112:121", "10.0.0.0/17:24 fd02::/112:120"):
        ((name, words),) = checks.unlike([ONE, BOTH, again, config("other", other)])
        assert name == "other"
        assert words.startswith("must have IPv4 10.0.0.0/16 by /24, as both has, which comes first: ")
    own = BOTH.ranges[0]
    assert list(checks.unlike([BOTH, again], own)) == []
    assert [name for name, _ in checks.unlike([BOTH, ONE, again], own._replace(mask=25))] == ["both", "again"]


@pytest.mark.parametrize(
    ("ranges", "reserved", "words"),
    [
        ("10.0.0.0/24:28", "10.0.0.0/8", "10.0.0.0/24 has no block outside 10.0.0.0/8, which is reserved"),
        ("10.0.0.0/24:28", "10.0.0.0/25 10.0.0.128/25", "outside 10.0.0.0/25, 10.0.0.128/25, which"),
        ("10.0.0.0/24:25", "10.0.0.1/32 10.0.0.255/32", "outside 10.0.0.1/32, 10.0.0.255/32, which"),
        ("10.0.0.0/24:28 fd00::/120:124", "fd00::/64", "fd00::/120 has no block outside fd00::/64"),
        ("10.0.0.0/24:28", "10.0.0.0/25 fd00::/8", None),
        ("10.0.0.0/24:28", "", None),
    ],
)
def test_a_range_of_which_nothing_is_left_beside_what_is_reserved(
    ranges: str, reserved: str, words: str | None
) -> None:
    said = list(checks.reserved([config("one", ranges)], networks(reserved)))
    assert [name for name, _ in said] == (["one"] if words else [])
    assert all(words in what for _, what in said if words)


def test_a_block_may_be_lacking_for_what_others_have() -> None:
    allocator = Allocator(networks("10.0.0.8/29"))
    allocator.add(config("small", "10.0.0.0/28:30"))
    allocator.occupy(Node("before", {}, networks("10.0.0.2/32")))
    allocator.allocate(Node("n", {}))
    why = "small has no block left, 1 of 4 given, the rest overlaps others' or what is reserved: make one"
    assert allocator.why_not(Node("late", {})).startswith(why)


def test_fewer_blocks_than_nodes_is_said_with_numbers() -> None:
    allocator = Allocator()
    allocator.add(config("large", "10.0.0.0/22:24"))
    allocator.add(config("small", "10.1.0.0/28:30", "size=small"))
    nodes = [Node(f"n{number}", {"size": "small"}) for number in range(4)]
    assert list(checks.crowded(allocator, [*nodes, Node("other", {})])) == []
    nodes += [Node("late", {"size": "small"}), Node("later", {"size": "small"})]
    assert list(checks.crowded(allocator, nodes)) == [
        ("small", "is for 6 nodes and has 4 blocks: 2 get another's or wait")
    ]
