"""The text for nft: what is whole, what changed; what the kernel makes of it is tested on a real one."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.services.rules import NOTHING, Frame, Port, State, Target, arranged, changes, read, whole

FRAME = Frame("a", IPv4Network("10.96.0.0/16"), (IPv4Network("10.61.0.0/24"),))
WEB, DNS = Port("10.96.0.10", "tcp", 80), Port("10.96.0.10", "udp", 53)
ONE, TWO, THREE, FOUR = (Target(f"10.61.0.{number}", 8080) for number in range(2, 6))
targets = st.frozensets(st.builds(Target, st.sampled_from(["10.61.0.2", "10.62.0.2"]), st.integers(1, 9)))


def servers(*some: Target) -> frozenset[Port]:
    return frozenset(Port(one.address, "tcp", one.port) for one in some)


def of(*some: Target) -> State:
    return State({WEB: some}, servers(*some))


@given(targets, targets)
def test_as_few_endpoints_as_can_be_have_another_number(
    before: frozenset[Target], after: frozenset[Target]
) -> None:
    first = arranged((), before)
    second = arranged(first, after)
    assert set(second) == after
    assert len(second) == len(after)
    moved = sum(1 for old, new in zip(first, second, strict=False) if old != new)
    assert moved == len(set(first[: len(second)]) - after)


def test_nothing_changes_nothing() -> None:
    assert changes(FRAME, of(ONE, TWO), of(ONE, TWO)) == ""
    assert arranged((TWO, ONE), {ONE, TWO}) == (TWO, ONE)


def test_an_endpoint_that_went_is_a_number_less_and_still_translated_for_a_day() -> None:
    before = State({WEB: (ONE, TWO, THREE), DNS: (FOUR,)}, servers(ONE, TWO, THREE, FOUR))
    after = State(
        {WEB: arranged(before.endpoints[WEB], {TWO, THREE}), DNS: (FOUR,)}, servers(TWO, THREE, FOUR)
    )
    assert after.endpoints[WEB] == (THREE, TWO)
    assert changes(FRAME, before, after) == (
        "add chain ip services-a pick-2\n"
        "add rule ip services-a pick-2 ct mark set numgen random mod 2 offset 1577058304\n"
        "add rule ip services-a pick-2 "
        "dnat ip to ip daddr . meta l4proto . th dport . ct mark map @endpoints\n"
        "add rule ip services-a pick-2 drop\n"
        "delete element ip services-a services { 10.96.0.10 . tcp . 80 : goto pick-3 }\n"
        "delete element ip services-a endpoints { 10.96.0.10 . tcp . 80 . 0x5e000000 : 10.61.0.2 . 8080, "
        "10.96.0.10 . tcp . 80 . 0x5e000002 : 10.61.0.4 . 8080 }\n"
        "delete element ip services-a servers { 10.61.0.2 . tcp . 8080 }\n"
        "delete element ip services-a same { 10.61.0.2 . 10.61.0.2 . tcp . 8080 }\n"
        "add element ip services-a services { 10.96.0.10 . tcp . 80 : goto pick-2 }\n"
        "add element ip services-a endpoints { 10.96.0.10 . tcp . 80 . 0x5e000000 : 10.61.0.4 . 8080 }\n"
        "add element ip services-a servers { 10.61.0.2 . tcp . 8080 timeout 1d }\n"
    )


def test_a_server_that_comes_back_has_no_time_out_any_more() -> None:
    text = changes(FRAME, of(ONE), of(ONE, TWO))
    element = "element ip services-a servers { 10.61.0.3 . tcp . 8080 }\n"
    assert text.index(f"add {element}") < text.index(f"delete {element}") < text.rindex(f"add {element}")


def test_a_service_without_endpoints_refuses() -> None:
    assert "refuse" not in changes(FRAME, NOTHING, of(ONE))
    assert "pick" not in changes(FRAME, NOTHING, of(ONE)._replace(endpoints={WEB: ()}))
    text = changes(FRAME, of(ONE), State({WEB: ()}, servers(ONE)))
    assert "delete element ip services-a services { 10.96.0.10 . tcp . 80 : goto pick-1 }" in text
    assert "add element ip services-a services { 10.96.0.10 . tcp . 80 : goto refuse }" in text


def test_a_whole_table_takes_the_place_of_its_own_name_alone() -> None:
    text = whole(FRAME, of(ONE), servers(ONE, TWO))
    assert text.startswith("add table ip services-a\ndelete table ip services-a\ntable ip services-a {\n")
    assert text.count("table") == 3
    assert "add element ip services-a servers { 10.61.0.3 . tcp . 8080 timeout 1d }\n" in text
    assert "flush ruleset" not in text


def test_neighbours_are_masqueraded_only_where_their_answers_would_not_pass() -> None:
    neighbours = "ip saddr 10.61.0.0/24 ip daddr 10.61.0.0/24 masquerade"
    assert neighbours not in whole(FRAME, NOTHING)
    assert neighbours in whole(FRAME._replace(bridged=False), NOTHING)
    assert FRAME._replace(bridged=False).layout != FRAME.layout


def test_only_a_pod_of_this_node_can_ask_itself_here() -> None:
    far = Target("10.62.0.2", 8080)
    assert "same { 10.62" not in whole(FRAME, of(far))
    assert "same { 10.62" in whole(FRAME._replace(pods=()), of(far))


LISTED: dict[str, list[dict[str, dict[str, Any]]]] = {
    "nftables": [
        {"metainfo": {"json_schema_version": 1}},
        {"map": {"name": "services", "elem": [
            [{"concat": ["10.96.0.10", 6, 80]}, {"goto": {"target": "pick-2"}}],
            [{"concat": ["10.96.0.10", 17, 53]}, {"goto": {"target": "refuse"}}],
        ]}},
        {"map": {"name": "endpoints", "elem": [
            [{"concat": ["10.96.0.10", 6, 80, 0x5E000001]}, {"concat": ["10.61.0.3", 8080]}],
            [{"concat": ["10.96.0.10", 6, 80, 0x5E000000]}, {"concat": ["10.61.0.2", 8080]}],
        ]}},
        {"set": {"name": "servers", "elem": [
            {"concat": ["10.61.0.2", 6, 8080]},
            {"elem": {"val": {"concat": ["10.61.0.4", 6, 8080]}, "timeout": 86400, "expires": 5}},
        ]}},
        {"chain": {"name": "layout-0123-1"}},
        {"chain": {"name": "pick-2"}},
        {"rule": {"chain": "nat-output", "handle": 1}},
        *[{"rule": {"chain": "pick-2", "handle": handle}} for handle in (2, 3, 4)],
        {"chain": {"name": "pick-2"}},
    ]
}  # fmt: skip


def test_what_a_table_holds_is_read() -> None:
    layout, state, departed = read(LISTED)
    assert layout == "layout-0123-1"
    assert state == State({WEB: (ONE, TWO), DNS: ()}, servers(ONE), {2})
    assert departed == servers(THREE)


@pytest.mark.parametrize("chain", ["nat-output", "pick-2"])
def test_a_table_that_lacks_a_rule_has_no_layout(chain: str) -> None:
    last = next(one for one in reversed(LISTED["nftables"]) if one.get("rule", {}).get("chain") == chain)
    layout, state, _ = read({"nftables": [one for one in LISTED["nftables"] if one is not last]})
    assert layout == ""
    assert state.endpoints == {WEB: (ONE, TWO), DNS: ()}


@pytest.mark.parametrize("missing", ["services", "endpoints", "servers"])
def test_a_table_that_is_not_ours_is_an_error(missing: str) -> None:
    rest = [one for one in LISTED["nftables"] if all(each.get("name") != missing for each in one.values())]
    with pytest.raises(KeyError):
        read({"nftables": rest})


def test_what_one_address_has_of_the_kernels_room_is_limited_if_it_can_be_counted() -> None:
    assert "ct count" not in whole(FRAME, NOTHING)
    text = whole(FRAME._replace(room=262_144), NOTHING)
    # Open ones by a sample of one in 16; 32,768 at once, and as many as are kept for 10 seconds.
    assert "numgen random mod 16 0 add @open { ip saddr ct count over 4096 }" in text
    assert "limit rate over 6553/second burst 32768 packets" in text
    assert "policy = { time_wait : 10 }" in text
    assert 16 * 4096 + 32_768 + 10 * 6553 < 262_144 * 5 // 8 + 1
    (prerouting,) = [one for one in text.split("  chain ") if one.startswith("nat-prerouting")]
    assert prerouting.index("jump begin") < prerouting.index("vmap @services")
    assert FRAME._replace(room=262_144).layout != FRAME.layout
