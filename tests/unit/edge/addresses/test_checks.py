"""What is said across configs that are sound each by itself."""

from __future__ import annotations

from edge.addresses import checks
from edge.addresses.allocation import Allocator, Node
from tests.unit.edge.addresses.test_allocation import config

ONE = config("one", "10.0.0.0/16:24")
BOTH = config("both", "10.0.0.0/16:24 fd00::/112:120")
SIX = config("six", "fd01::/112:120")


def test_of_one_cluster_all_have_both_families_or_none() -> None:
    assert list(checks.mixed([ONE, SIX])) == []
    assert list(checks.mixed([BOTH, BOTH])) == []
    assert list(checks.mixed([ONE, BOTH, SIX])) == [
        ("one", "must have IPv6 too, as both has: of one cluster all have both, or none"),
        ("six", "must have IPv4 too, as both has: of one cluster all have both, or none"),
    ]


def test_where_packets_are_wrapped_all_dual_configs_have_one_range_and_mask() -> None:
    again = config("again", "10.0.0.0/16:24 fd02::/112:120")
    assert list(checks.unlike([ONE, BOTH, again, SIX])) == []
    for other in ("10.0.0.0/16:25 fd02::/112:121", "10.0.0.0/17:24 fd02::/112:120"):
        ((name, words),) = checks.unlike([ONE, BOTH, again, config("other", other)])
        assert name == "other"
        assert words.startswith("must have IPv4 10.0.0.0/16 by /24, as both has: ")


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
