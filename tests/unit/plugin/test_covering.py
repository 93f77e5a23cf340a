"""Every pair of values occurs, and only where it has a meaning."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest

from tests.system.plugin.covering import Dimension, complete, covering, first, pairs, pairs_of, rows, singly
from tests.system.plugin.frame_kinds import DIMENSIONS

SMALL = {
    "tags": Dimension(("0", "1", "2")),
    "inner tag": Dimension(("0", "5"), {"tags": frozenset({"2"})}),
    "kind": Dimension(("IPv4", "ARP")),
    "sender": Dimension(("own", "forged"), {"kind": frozenset({"ARP"})}),
}


def test_a_pair_is_possible_where_both_values_have_a_meaning() -> None:
    possible = pairs(SMALL)
    assert (("tags", "2"), ("inner tag", "5")) in possible
    assert (("tags", "1"), ("inner tag", "5")) not in possible
    assert (("inner tag", "5"), ("sender", "forged")) in possible
    assert (("kind", "IPv4"), ("sender", "own")) not in possible
    assert len(possible) == 2 + 3 * 2 + 3 * 2 + 2 * 2 + 2 * 2 + 2


def test_what_has_no_meaning_is_left_out() -> None:
    assert complete(SMALL, {}, first) == {"tags": "0", "kind": "IPv4"}
    assert complete(SMALL, {"tags": "1", "inner tag": "0"}, first) is None
    assert complete(SMALL, {"inner tag": "5", "sender": "forged"}, first) == {
        "tags": "2",
        "inner tag": "5",
        "kind": "ARP",
        "sender": "forged",
    }


def test_every_value_occurs_beside_ordinary_ones() -> None:
    found = list(singly(SMALL))
    assert {"tags": "1", "kind": "IPv4"} in found
    assert {"tags": "0", "kind": "ARP", "sender": "forged"} in found


@pytest.mark.long(one_in=3)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_pair_occurs(seed: int) -> None:
    covered = {pair for row in covering(DIMENSIONS, Random(seed)) for pair in pairs_of(row)}
    assert covered == set(pairs(DIMENSIONS))


def test_rows_are_distinct_as_many_as_asked_for_and_the_same_for_a_seed() -> None:
    found = rows(DIMENSIONS, 5000, 1)
    assert len({tuple(row.items()) for row in found}) == len(found) == 5000
    assert {pair for row in found for pair in pairs_of(row)} == set(pairs(DIMENSIONS))
    few = dict(list(DIMENSIONS.items())[:6])
    assert rows(few, 50, 1) == rows(few, 50, 1) != rows(few, 50, 2)


def test_no_possible_pair_is_forgotten() -> None:
    """Beside the rows that rule out, nothing is: a look at rows made at random."""
    chance = Random(1)
    possible = set(pairs(DIMENSIONS))
    for _ in range(500):
        row = complete(DIMENSIONS, {}, chance.choice)
        assert row is not None
        assert set(combinations(row.items(), 2)) <= possible
