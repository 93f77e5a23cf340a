"""Which combinations of values to try: a set of rows in which every pair of values occurs.

A fault hides another where a guard looks for one thing after the other, so a row with many odd values proves
little. The first value of each dimension is therefore the ordinary one: first come rows with one odd value,
then those that cover every pair, then pairs of odd values with all else ordinary. Pure functions; what the
values mean is the reader's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from random import Random

CANDIDATES = 20  # rows made for a pair, of which the one with the most pairs that are still missing is taken

Row = dict[str, str]
Pair = tuple[tuple[str, str], tuple[str, str]]
Pick = Callable[[Sequence[str]], str]


@dataclass(frozen=True)
class Dimension:
    """Values, the ordinary one first, and the values of dimensions before it with which it has a meaning."""

    values: Sequence[str]
    when: Mapping[str, frozenset[str]] = field(default_factory=dict)


Dimensions = Mapping[str, Dimension]


def rows(dimensions: Dimensions, count: int, seed: int) -> list[Row]:
    """At least ``count`` distinct rows, and at least as many as it takes for every pair of values."""
    chance = Random(seed)
    needed = [*ordinary(dimensions), *singly(dimensions), *covering(dimensions, chance)]
    found = {tuple(row.items()): row for row in needed}
    alone = [complete(dimensions, dict(pair), first) for pair in pairs(dimensions)]
    chance.shuffle(alone)
    for row in alone:
        if len(found) >= count:
            break
        if row is not None:
            found.setdefault(tuple(row.items()), row)
    while len(found) < count:
        row = complete(dimensions, {}, chance.choice)
        assert row is not None
        found.setdefault(tuple(row.items()), row)
    return list(found.values())


def ordinary(dimensions: Dimensions) -> Iterator[Row]:
    """The row in which nothing is odd."""
    row = complete(dimensions, {}, first)
    assert row is not None
    yield row


def singly(dimensions: Dimensions) -> Iterator[Row]:
    """Every value once, all else as ordinary as it allows."""
    for name, dimension in dimensions.items():
        for value in dimension.values:
            row = complete(dimensions, {name: value}, first)
            assert row is not None, f"{name}={value} never has a meaning"
            yield row


def covering(dimensions: Dimensions, chance: Random) -> Iterator[Row]:
    """Rows in which every possible pair occurs, by a greedy choice."""
    missing = dict.fromkeys(pairs(dimensions))
    while missing:
        wanted = dict(next(iter(missing)))
        candidates = [complete(dimensions, wanted, chance.choice) for _ in range(CANDIDATES)]
        best = max(
            (row for row in candidates if row is not None),
            key=lambda row: sum(pair in missing for pair in pairs_of(row)),
        )
        for pair in pairs_of(best):
            missing.pop(pair, None)
        yield best


def pairs(dimensions: Dimensions) -> list[Pair]:
    """Every pair of values of two dimensions that can occur in one row."""
    found = []
    for one, other in combinations(dimensions, 2):
        for value in dimensions[one].values:
            for second in dimensions[other].values:
                if complete(dimensions, {one: value, other: second}, first) is not None:
                    found.append(((one, value), (other, second)))
    return found


def pairs_of(row: Row) -> Iterator[Pair]:
    """The pairs a row has."""
    return combinations(row.items(), 2)


def complete(dimensions: Dimensions, chosen: Row, pick: Pick) -> Row | None:
    """A row with these values; the others are picked. None if they have no meaning together."""
    allowed = demands(dimensions, chosen)
    row: Row = {}
    for name, dimension in dimensions.items():
        if all(row.get(other) in values for other, values in dimension.when.items()):
            values = [value for value in dimension.values if value in allowed.get(name, dimension.values)]
            if not values:
                return None
            row[name] = pick(values)
        elif name in chosen:
            return None
    return row


def demands(dimensions: Dimensions, chosen: Row) -> dict[str, set[str]]:
    """Which values each dimension may have so that the chosen ones have a meaning."""
    allowed = {name: {value} for name, value in chosen.items()}
    for name in reversed(list(dimensions)):  # so what a demanded dimension demands is seen after it
        if name in allowed:
            for other, values in dimensions[name].when.items():
                allowed[other] = allowed.get(other, set(dimensions[other].values)) & values
    return allowed


def first(values: Sequence[str]) -> str:
    """The ordinary one."""
    return values[0]
