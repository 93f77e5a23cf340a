"""What holds of hints whatever nodes, endpoints and present hints are."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.services.endpoints import Endpoint, Node, Slice, ready_ones
from edge.services.explanation import expectation, explain, lines
from edge.services.hints import (
    AUTO,
    CLOSE,
    MODES,
    MOST_LOAD,
    NEAREST,
    OFF,
    STRICT,
    Reason,
    allocate,
    capacities,
)
from edge.services.selection import choose, distinct
from tests import cases

pytestmark = pytest.mark.long

CASES = cases.count("CONCORDE_HINT_EXAMPLES", 15, 1000)

ZONES = st.sampled_from(["a", "b", "c", "d"])
NODES = st.lists(
    st.builds(Node, st.uuids().map(str), ZONES, st.integers(1, 8), ready=st.integers(0, 5).map(bool)),
    max_size=6,
)
ENDPOINTS = st.builds(
    Endpoint,
    st.integers(0, 10**9).map(str),
    ZONES,
    ready=st.sampled_from([True, True, True, False, None]),
    serving=st.sampled_from([True, False, None]),
    terminating=st.booleans(),
    hints=st.sampled_from([(), (), ("a",), ("b",), ("a", "b")]),
)
SLICES = st.lists(st.lists(ENDPOINTS, max_size=8).map(tuple), max_size=3).map(
    lambda lists: [Slice(f"web-{at}", there) for at, there in enumerate(lists)]
)
MODE = st.sampled_from(MODES)


@settings(max_examples=CASES, deadline=None)
@given(MODE, NODES, SLICES)
def test_whatever_is_hinted_is_ready_and_stays(mode: str, nodes: list[Node], slices: list[Slice]) -> None:
    result = allocate(mode, nodes, slices)
    assert [one._replace(hints=()) for each in result.slices for one in each.endpoints] == [
        one._replace(hints=()) for each in slices for one in each.endpoints
    ]
    assert not any(one.hints for each in result.slices for one in each.endpoints if not one.ready)
    assert all(
        bool(one.hints) == (result.why_not is None and mode != OFF) for one in ready_ones(result.slices)
    )
    assert result == allocate(mode, nodes[::-1], slices)  # in whichever order nodes are listed
    if mode != AUTO:  # auto may keep a slice that it would not have made, and then more of them
        assert allocate(mode, nodes, result.slices).slices == result.slices


@settings(max_examples=CASES, deadline=None)
@given(st.sampled_from([AUTO, STRICT, CLOSE]), NODES, SLICES)
def test_an_endpoint_has_one_hint(mode: str, nodes: list[Node], slices: list[Slice]) -> None:
    bare = [each._replace(changed=True) for each in slices]
    assert all(len(one.hints) <= 1 for each in allocate(mode, nodes, bare).slices for one in each.endpoints)


@settings(max_examples=CASES, deadline=None)
@given(NODES, SLICES)
def test_strict_is_never_over_120_percent(nodes: list[Node], slices: list[Slice]) -> None:
    result = allocate(STRICT, nodes, slices)
    if result.hinted and len(distinct(slices)) == sum(len(each.endpoints) for each in slices):
        told = [Slice(each.name, tuple(one for one in each.endpoints if one.ready)) for each in result.slices]
        assert expectation(STRICT, nodes, told).busiest <= MOST_LOAD


@settings(max_examples=CASES, deadline=None)
@given(NODES, SLICES)
def test_nearest_hints_each_zone(nodes: list[Node], slices: list[Slice]) -> None:
    result = allocate(NEAREST, nodes, slices)
    assert not result.hinted or {node.zone for node in nodes} <= result.hinted.keys()


@settings(max_examples=CASES, deadline=None)
@given(MODE, ZONES, NODES, SLICES)
def test_a_proxy_uses_what_is_ready_and_some_if_there_is_some(
    mode: str, zone: str, nodes: list[Node], slices: list[Slice]
) -> None:
    known = distinct(allocate(mode, nodes, slices).slices)
    ready = [one for one in known if one.ready is not False]
    ending = [one for one in known if one.terminating and one.serving is not False]
    used = choose(known, zone, mode != OFF).endpoints
    assert set(used) <= set(ready or ending)
    assert bool(used) == bool(ready or ending)


@settings(max_examples=CASES, deadline=None)
@given(MODE, NODES, SLICES)
def test_everything_is_explained_and_what_is_proposed_is_good(
    mode: str, nodes: list[Node], slices: list[Slice]
) -> None:
    explained = explain(mode, nodes, slices)
    assert list(lines(explained))
    assert all(one.expected.busiest <= MOST_LOAD for one in explained.remedies)
    capacity = capacities(nodes)
    if not isinstance(capacity, Reason):
        assert sum(row.share for row in explained.rows) == Fraction(1)
