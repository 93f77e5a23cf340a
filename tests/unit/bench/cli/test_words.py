from __future__ import annotations

import pytest
from invoke.context import Context
from invoke.tasks import task

from bench.cli import words
from bench.cli.tasks import VERBS


@task(positional=["place"], help={"place": "a pod"})
def execute(_context: Context, place: str, name: str = "", quiet: bool = False) -> None: ...


@task(iterable=["claim"])
def reproduce(_context: Context, claim: list[str], seed: int = 0, list_: bool = False) -> None: ...


@pytest.mark.parametrize(
    ("typed", "understood"),
    [
        ("A-1", "A-1"),
        ("A-1 ip route", "A-1 -- ip route"),
        ("A-1 ls --help", "A-1 -- ls --help"),
        ("A-1 -- ip route", "A-1 -- ip route"),
        ("A-1 sh -c x -- y", "A-1 -- sh -c x -- y"),
        ("--name t A-1 ip", "--name t A-1 -- ip"),
        ("A-1 --name t", "A-1 --name t"),
        ("A-1 --name t ip", "A-1 --name t -- ip"),
        ("", ""),
    ],
)
def test_a_command_begins_with_the_second_word_that_stands_alone(typed: str, understood: str) -> None:
    assert words.with_command(typed.split(), execute) == understood.split()


@pytest.mark.parametrize("typed", ["--quiet A-1 --name t", "--name t --quiet A-1", "A-1 --name t --quiet"])
def test_what_a_verb_needs_comes_first(typed: str) -> None:
    assert words.places_first(typed.split(), execute)[0] == "A-1"
    assert sorted(words.places_first(typed.split(), execute)) == sorted(typed.split())


def test_what_is_missing_is_named() -> None:
    with pytest.raises(ValueError, match=r"^execute: PLACE is missing: a pod$"):
        words.places_first(["--name", "t"], execute)
    assert words.places_first(["--place", "A-1"], execute) == ["--place", "A-1"]


def test_words_alone_are_values_of_the_option_that_a_verb_has_for_them() -> None:
    typed = ["a", "--seed", "7", "-s", "8", "b", "--list", "c", "--claim=d"]
    assert words.as_options(typed, "claim", reproduce) == [
        *("--claim=a", "--seed", "7", "-s", "8", "--claim=b", "--list", "--claim=c", "--claim=d")
    ]
    assert words.as_options([], "claim", reproduce) == []


def test_an_option_that_takes_one_value_takes_no_two_words() -> None:
    up = next(one for one in VERBS.tasks() if one.name == "up")
    with pytest.raises(ValueError, match="one scenario at a time, not contmec and latency"):
        words.as_options(["contmec", "latency"], "scenario", up)


@pytest.mark.parametrize("typed", [["--seed", "x"], ["--seed=x"], ["--list", "--seed", "x"]])
def test_what_is_no_number_is_named_with_its_option(typed: list[str]) -> None:
    with pytest.raises(ValueError, match=r"^--seed: 'x' is not a whole number$"):
        words.check_numbers(typed, reproduce)
    words.check_numbers(["--seed", "3", "--", "--seed", "x"], reproduce)


def test_what_is_meant_is_near() -> None:
    assert words.meant("benchh", ["bench", "matrix"]) == "; did you mean bench?"
    assert words.meant("zzz", ["bench", "matrix"]) == ""
