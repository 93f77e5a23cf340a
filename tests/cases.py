"""How many cases tests try, and which.

Four variables say so, and reach the processes of pytest-xdist:

* CONCORDE_LONG: percent of the full counts; with 0, the default, the few that ``./invokew test`` does.
* CONCORDE_SEED: which cases are generated or chosen; by default a number made of the commit.
* CONCORDE_SHARD: ``2/4`` is the second quarter of what would be run.
* CONCORDE_TURN: if set, tests marked ``by_turns`` take turns: one is run, and the seed says which.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from tests.paths import ROOT

Item = TypeVar("Item")

LONG, SEED, SHARD, TURN = "CONCORDE_LONG", "CONCORDE_SEED", "CONCORDE_SHARD", "CONCORDE_TURN"
SEEDS = 2**24


def share() -> int:
    """Return how much of the full counts is asked for (percent)."""
    return int(os.environ.get(LONG, "0"))


def count(variable: str, few: int, full: int) -> int:
    """Return how often a test is to do something: what its variable says, or a share of the full count."""
    if variable in os.environ:
        return int(os.environ[variable])
    return max(few, full * min(share(), 100) // 100)


def about(counted: Mapping[str, int], *kinds: str) -> None:
    """See that what a test did at random was about something.

    Each kind must have happened in a tenth of the full count; in the few of ``./invokew test`` some may be
    missing by chance.
    """
    assert any(counted[kind] for kind in kinds), counted
    assert not share() or all(counted[kind] for kind in kinds), counted


def seed() -> int:
    """Return the seed of all that is generated or chosen."""
    return int(os.environ[SEED])


def some_of(variable: str, few: int, full: int) -> Callable[[int], list[int]]:
    """Return what lists so many of ``full`` cases, or a multiple; the seed says which."""

    def numbers(factor: int) -> list[int]:
        wanted = count(variable, few, full)
        return [(seed() * wanted + at) % full for at in range(min(wanted * factor, full))]

    return numbers


def of_commit() -> int:
    """Return the seed that is made of the commit; 1 where there is no repository."""
    asked = ["git", "rev-parse", "--verify", "--quiet", "HEAD"]
    try:
        told = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return 1
    return int(told[:12], 16) % SEEDS


def most_seconds() -> int:
    """Return how long a test marked ``long`` may take: ten minutes, and an hour for its full count."""
    return 600 + 33 * share()


def chosen(items: Sequence[Item]) -> list[Item]:
    """Return the share of some cases that is asked for: with 10, each tenth; the seed says the first.

    So neighbours, which are alike, are tried at different pushes, and as many seeds in a row try all.
    """
    step = max(1, 100 // (share() or 100))
    return list(items[seed() % step :: step])


def shard(items: Sequence[Item]) -> list[Item]:
    """Return the part of them that is asked for.

    Raises:
        ValueError: The variable has another form than 2/4, or there is no such part.
    """
    number, slash, of = os.environ.get(SHARD, "1/1").partition("/")
    if not (slash and number.isdigit() and of.isdigit() and 1 <= int(number) <= int(of)):
        raise ValueError(f"{SHARD}: must be like 2/4, not {os.environ[SHARD]!r}")
    return list(items[int(number) - 1 :: int(of)])


def whose_turn_it_is(items: Sequence[Item]) -> list[Item]:
    """Return all of what takes turns, or the one whose turn it is."""
    return [items[seed() % len(items)]] if items and os.environ.get(TURN) else list(items)


def command(test: str) -> str:
    """Return the command that repeats a test with the same cases."""
    given = {name: value for name, value in sorted(os.environ.items()) if name.startswith("CONCORDE_")}
    for one in (SHARD, TURN):
        given.pop(one, None)
    return " ".join([*(f"{name}={value}" for name, value in given.items()), f".venv/bin/pytest '{test}'"])


def with_more_samples(judge: Callable[[int], None], factors: Sequence[int] = (1, 2, 4)) -> None:
    """Judge a rate, a time or a share by some samples; if it does not pass, by twice and four times as many.

    ``judge`` takes the factor, measures anew, and asserts; its tolerance stays. The last one's word counts.
    """
    for factor in factors[:-1]:
        try:
            judge(factor)
        except AssertionError as error:
            print(f"by {factor} times the samples: {error}")  # noqa: T201 - shown when it fails
        else:
            return
    judge(factors[-1])
