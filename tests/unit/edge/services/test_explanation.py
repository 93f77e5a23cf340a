"""Whoever asks why a service has no hints is told the numbers, and what was tried and helps."""

from __future__ import annotations

from fractions import Fraction

import pytest

from edge.services.endpoints import Endpoint, Node, Slice
from edge.services.explanation import expectation, explain, lines
from edge.services.hints import AUTO, CLOSE, MODES, MOST_LOAD, NEAREST, OFF, STRICT, Safeguard, allocate
from edge.services.selection import Policies, Why
from tests.unit.edge.services.builders import endpoints, nodes, service


def hinted(mode: str, there: list[Node], slices: list[Slice]) -> list[Slice]:
    return list(allocate(mode, there, slices).slices)


def remedies(mode: str, there: list[Node], slices: list[Slice]) -> list[str]:
    return [one.what for one in explain(mode, there, hinted(mode, there, slices)).remedies]


def test_four_four_and_three_endpoints_are_off_and_one_more_helps() -> None:
    there, slices = nodes(1000, 1000, 1000), service(4, 4, 3)
    assert list(lines(explain(AUTO, there, slices))) == [
        "zone  nodes  CPU  requests  endpoints  hinted  least  served by               busiest",
        "a     1/1    1    33 %      4          0       -      4 of a, 4 of b, 3 of c  100 %",
        "b     1/1    1    33 %      4          0       -      4 of a, 4 of b, 3 of c  100 %",
        "c     1/1    1    33 %      3          0       -      4 of a, 4 of b, 3 of c  100 %",
        "no hints: Unable to allocate minimum required endpoints to each zone without exceeding overload "
        "threshold (11 endpoints, 3 zones): a needs 4, b needs 4, c needs 4: 12 in all",
        "a, b, c: hints are ignored: one or more endpoints is missing a zone hint",
        "expected: busiest endpoint at 100 %, 67 % leave their zone",
        "with more ready endpoints, 1 in c: busiest endpoint at 100 %, 0 % leave their zone",
    ]


def test_an_overloaded_zone_is_shown_and_strict_helps() -> None:
    there = nodes(1, 4)
    found = explain(AUTO, there, hinted(AUTO, there, service(0, 7)))
    assert found.why_not is None
    assert not found.pending
    assert [(row.hinted, row.minimum, row.busiest) for row in found.rows] == [
        (1, 2, Fraction(7, 5)),
        (6, 5, Fraction(14, 15)),
    ]
    assert found.rows[0].served_by == {"b": 1}
    assert [one.what for one in found.remedies] == [
        "with mode strict",
        "with mode close",
        "with mode nearest",
        "with more ready endpoints, 1 in a",
    ]
    assert found.remedies[0].expected.busiest == Fraction(28, 25)


def test_a_zone_without_a_hint_is_shown_to_use_all() -> None:
    there = nodes(1, 8)
    rows = explain(AUTO, there, hinted(AUTO, there, service(0, 4))).rows
    assert [(row.hinted, row.why, row.served_by) for row in rows] == [
        (0, Why.NOT_FOR_ZONE, {"b": 4}),
        (4, Why.HINTED, {"b": 4}),
    ]


@pytest.mark.parametrize(
    ("there", "ready", "helps"),
    [
        ([*nodes(1, 1), Node("down", "c", 1, ready=False)], (1, 2), "with more ready endpoints, 1 in a"),
        ([nodes(1)[0], Node("down", "b", 1, ready=False)], (2, 2), "with down ready"),
        (nodes(300, 400, 300), (1, 1, 0), "with more ready endpoints, 1 in b, 1 in c"),
        (
            nodes(1, 1, 1, 1, 1, 1),
            (1, 0),
            "with more ready endpoints, 1 in b, 1 in c, 1 in d, 1 in e, 1 in f",
        ),
    ],
)
def test_what_helps_is_found_by_trying(there: list[Node], ready: tuple[int, ...], helps: str) -> None:
    assert helps in remedies(AUTO, there, service(*ready))


def test_of_hints_that_are_off_each_mode_is_shown() -> None:
    assert remedies(OFF, nodes(1, 1), service(2, 2)) == [f"with mode {mode}" for mode in MODES if mode != OFF]


def test_nothing_is_proposed_where_all_is_well_or_a_policy_is_local() -> None:
    there = nodes(1, 1)
    assert not remedies(AUTO, there, service(2, 2))
    found = explain(AUTO, there, service(1), policies=Policies(internal="Local"))
    assert (found.remedies, {row.why for row in found.rows}) == ([], {Why.ON_NODE})


def test_nodes_without_information_are_named_and_their_requests_counted() -> None:
    there = [*nodes(1000, 1000), Node("bare")]
    found = explain(AUTO, there, hinted(AUTO, there, service(2, 2)))
    assert found.why_not is not None
    assert found.why_not.safeguard is Safeguard.NODE_INFORMATION
    assert [row.share for row in found.rows] == [Fraction(1, 3)] * 2  # by nodes: not all say their processors
    assert f"with mode {CLOSE}" in [one.what for one in found.remedies]


def test_hints_that_are_not_written_yet_are_pending() -> None:
    assert explain(AUTO, nodes(1, 1), service(2, 2)).pending
    assert "hints are not yet what they should be" in lines(explain(AUTO, nodes(1, 1), service(2, 2)))


def test_a_service_without_endpoints_and_a_cluster_without_nodes_are_explained() -> None:
    assert explain(AUTO, nodes(1, 1), []).rows[0].why is Why.NONE
    assert explain(AUTO, [], service(1)).rows[0].share == 0
    assert list(lines(explain(NEAREST, [], [])))


def test_all_requests_are_carried_by_somebody() -> None:
    for mode in (OFF, AUTO, STRICT, CLOSE, NEAREST):
        there, slices = (
            nodes(3, 2, 1),
            [Slice("web-1", (*endpoints("aaabbcc"), Endpoint("x", "c", ready=False)))],
        )
        loads = expectation(mode, there, hinted(mode, there, slices)).loads
        assert sum(loads.values()) == len(loads) == 7
        assert mode != STRICT or max(loads.values()) <= MOST_LOAD
