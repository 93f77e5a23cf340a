"""Who is given what as nodes and configs come and go, and that a restart at any point changes nothing."""

from __future__ import annotations

from ipaddress import ip_network

from edge.addresses.allocation import Allocator, Config, Node, Range
from edge.addresses.arrivals import Arrivals, Gifts, as_node
from edge.addresses.selectors import Requirement, Selector


def config(name: str, network: str, mask: int, **labels: str) -> Config:
    wanted = tuple(Requirement(key, "In", (value,)) for key, value in labels.items())
    return Config(name, (Range(ip_network(network), mask),), Selector(wanted))


def node(name: str, block: str = "", created: str = "", **labels: str) -> Node:
    return Node(name, labels, (ip_network(block),) if block else (), created)


def told(gifts: Gifts) -> dict[str, str]:
    return {name: " ".join(map(str, given.blocks)) for name, given in gifts.items()}


def arrivals(*configs: Config) -> Arrivals:
    allocator = Allocator()
    for one in configs:
        allocator.add(one)
    return Arrivals(allocator)


FOUR = config("four", "10.0.0.0/28", 30)


def test_a_list_goes_by_creation_and_then_by_name() -> None:
    gifts = arrivals(FOUR).listed(
        [node("a", created="2026-01-01T00:00:02Z"), node("c", created="2026-01-01T00:00:01Z"), node("b")]
    )
    assert told(gifts) == {"b": "10.0.0.0/30", "c": "10.0.0.4/30", "a": "10.0.0.8/30"}


def test_what_nodes_have_is_taken_before_anything_is_given() -> None:
    one = arrivals(FOUR)
    gifts = one.listed([node("a"), node("z", "10.0.0.0/30"), node("y", "192.168.7.0/24")])
    assert told(gifts) == {"a": "10.0.0.4/30"}
    assert list(one.allocator.nodes_of("four")) == ["z", "a"]
    assert list(one.allocator.nodes_of("")) == ["y"]


def test_live_goes_by_arrival() -> None:
    one = arrivals(FOUR)
    assert told(one.came(node("b", created="2026-01-01T00:00:02Z"))) == {"b": "10.0.0.0/30"}
    assert told(one.came(node("a", created="2026-01-01T00:00:01Z"))) == {"a": "10.0.0.4/30"}


def test_who_waits_is_served_by_a_config_a_free_block_or_other_labels() -> None:
    one = arrivals()
    assert one.came(node("a")) == {}
    assert one.why("a") == "there is no config yet: make one"
    assert told(one.config_came(config("one", "10.0.0.0/30", 30))) == {"a": "10.0.0.0/30"}
    assert one.listed([node("a", "10.0.0.0/30"), node("c"), node("b")]) == {}
    assert told(one.gone("a")) == {"b": "10.0.0.0/30"}
    assert one.config_came(config("small", "10.1.0.0/24", 30, size="small")) == {}
    assert told(one.came(node("c", size="small"))) == {"c": "10.1.0.0/30"}
    assert not one.waiting


def test_what_was_promised_is_returned_until_it_is_seen() -> None:
    one = arrivals(FOUR)
    one.came(node("a"))
    assert one.came(node("a")) == {}
    assert told(one.listed([node("a")])) == {"a": "10.0.0.0/30"}
    one.came(node("a", "10.0.0.0/30"))
    assert one.listed([node("a", "10.0.0.0/30")]) == {}


def test_what_somebody_else_gave_is_kept_and_ours_is_free() -> None:
    one = arrivals(config("one", "10.0.0.0/30", 30))
    one.came(node("a"))
    one.came(node("b"))
    assert told(one.came(node("a", "192.168.0.0/24"))) == {"b": "10.0.0.0/30"}


def test_another_node_of_the_same_name_is_due_what_its_labels_say() -> None:
    one = arrivals(FOUR, config("small", "10.1.0.0/24", 30, size="small"))
    one.listed([node("a", "10.0.0.0/30", created="2026-01-01T00:00:01Z")])
    assert told(one.listed([node("a", created="2026-01-01T00:00:02Z", size="small")])) == {"a": "10.1.0.0/30"}
    assert told(one.listed([node("a", created="2026-01-01T00:00:03Z")])) == {"a": "10.0.0.0/30"}


def test_a_withdrawn_config_gives_nothing_and_its_nodes_keep_theirs() -> None:
    one = arrivals(FOUR)
    one.came(node("a"))
    one.allocator.withdraw("four", "is being deleted")
    assert one.came(node("b")) == {}
    assert one.why("b") == "four is being deleted"
    assert list(one.allocator.nodes_of("four")) == ["a"]
    one.config_gone("four")
    assert (list(one.allocator.nodes_of("")), list(one.allocator.nodes_of("four"))) == (["a"], [])
    assert told(one.config_came(FOUR)) == {"b": "10.0.0.4/30"}
    assert list(one.allocator.nodes_of("four")) == ["a", "b"]


def test_it_is_remembered_of_which_config_a_node_has_its_block() -> None:
    wide, narrow = config("wide", "10.0.0.0/24", 30), config("narrow", "10.0.0.0/28", 30)
    one = arrivals(wide, narrow)
    one.listed([node("a", "10.0.0.0/30"), node("b", "10.0.0.4/30")], {"a": "wide", "b": "gone"})
    assert {name: given.config for name, given in one.allocator.given.items()} == {"a": "wide", "b": "narrow"}


def test_a_node_object_is_read_as_the_api_has_it() -> None:
    old = as_node({"metadata": {"name": "a"}, "spec": {"podCIDR": "10.10.0.1/24"}})
    assert old == node("a", "10.10.0.0/24")
    both = {"podCIDR": "010.1.0.0/24", "podCIDRs": ["010.1.0.0/24", "fd00::1/120"]}
    metadata = {"name": "b", "labels": {"l": "1"}, "creationTimestamp": "2026-01-01T00:00:01Z"}
    assert as_node({"metadata": metadata, "spec": both}) == Node(
        "b", {"l": "1"}, (ip_network("10.1.0.0/24"), ip_network("fd00::/120")), "2026-01-01T00:00:01Z"
    )
    assert as_node({"metadata": {"name": "c"}}) == node("c")


def test_a_store_restored_from_a_backup_leaves_nodes_what_they_had_unless_another_has_it() -> None:
    one = arrivals(FOUR)
    a, b, c = (Node(name, {}, created="2026-01-01T00:00:00Z", uid=name) for name in "abc")
    first, second = ((ip_network(text),) for text in ("10.0.0.0/30", "10.0.0.4/30"))
    one.listed([a._replace(blocks=second), b._replace(blocks=first)])
    assert told(one.came(a)) == {"a": "10.0.0.4/30"}
    assert told(one.came(c)) == {"c": "10.0.0.8/30"}
    assert told(one.listed([a, b])) == {"a": "10.0.0.4/30", "b": "10.0.0.0/30"}
    returned = c._replace(blocks=first)
    assert told(one.listed([a, b, returned])) == {"a": "10.0.0.4/30", "b": "10.0.0.8/30"}
    assert told(one.listed([a, b._replace(uid="new")])) == {"a": "10.0.0.4/30", "b": "10.0.0.0/30"}
