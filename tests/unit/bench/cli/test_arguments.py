from __future__ import annotations

import pytest

from bench.cli import arguments, program
from bench.cli.table import VERBS
from bench.console.verb import MANY, SHORT, Option, Verb, place

execute = Verb(
    "execute", "", "", (place("place", "a pod"), Option("name", "", ""), Option("quiet", False, ""))
)
reproduce = Verb(
    "reproduce",
    "",
    "",
    (Option("claim", MANY, ""), Option("seed", 0, ""), Option("to", "", ""), Option("list_", False, "")),
)


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
    assert arguments.with_command(typed.split(), execute) == understood.split()


@pytest.mark.parametrize(
    ("typed", "understood"),
    [
        ("A-1 -c 3 udp", "A-1 -- -c 3 udp"),
        ("-n t A-1 -c 3", "-n t A-1 -- -c 3"),
        ("A-1 -n t --quiet -vv", "A-1 -n t --quiet -- -vv"),
        ("A-1 udp -c 3", "A-1 -- udp -c 3"),
        ("A-1 -- -c 3", "A-1 -- -c 3"),
        ("A-1 --dry", "A-1 --dry"),
        ("-c 3 A-1", "-c 3 -- A-1"),  # the place is 3; -c is refused
    ],
)
def test_or_with_an_option_that_is_another_program_s(typed: str, understood: str) -> None:
    assert arguments.with_command(typed.split(), execute, by_option=True) == understood.split()


@pytest.mark.parametrize(
    ("typed", "option"),
    [("-c 3", "-c"), ("--nam t", "--nam"), ("--quiet -d", "-d"), ("-nt -qx", "-qx"), ("-R --echo", "--echo")],
)
def test_what_is_no_option_of_a_verb_is_refused(typed: str, option: str) -> None:
    """Also what invoke has itself, and would take there."""
    with pytest.raises(ValueError, match=rf"^execute: no option {option}\b"):
        arguments.check_options(typed.split(), execute)


@pytest.mark.parametrize("typed", ["-n -c", "-nt", "--name=-c", "--quiet --dry -h", "-R", "A-1 -- -c"])
def test_what_is_one_is_not(typed: str) -> None:
    arguments.check_options(typed.split(), execute)


def test_a_short_option_means_one_thing_everywhere() -> None:
    meanings = {name: {f"--{long}"} for long, name in program.SHORT.items()}
    for option in (one for verb in VERBS.values() for one in verb.options if one.short):
        meanings.setdefault(option.short, set()).add(option.flag)
    assert {name: longs for name, longs in meanings.items() if len(longs) > 1} == {}
    assert set(meanings) == {*SHORT.values(), *program.SHORT.values()}


@pytest.mark.parametrize("name", SHORT)
def test_an_option_has_its_short_form_with_every_verb(name: str) -> None:
    having = [one for verb in VERBS.values() for one in verb.options if name == one.name and not one.place]
    assert having
    assert all(one.short == SHORT[name] for one in having)


@pytest.mark.parametrize("typed", ["--quiet A-1 --name t", "--name t --quiet A-1", "A-1 --name t --quiet"])
def test_what_a_verb_needs_comes_first(typed: str) -> None:
    assert arguments.places_first(typed.split(), execute)[0] == "A-1"
    assert sorted(arguments.places_first(typed.split(), execute)) == sorted(typed.split())


def test_what_is_missing_is_named() -> None:
    with pytest.raises(ValueError, match=r"^execute: PLACE is missing: a pod$"):
        arguments.places_first(["--name", "t"], execute)
    assert arguments.places_first(["--place", "A-1"], execute) == ["--place", "A-1"]


def test_words_alone_are_values_of_the_option_that_a_verb_has_for_them() -> None:
    typed = ["a", "--seed", "7", "-t", "8", "b", "--list", "c", "--claim=d"]
    assert arguments.as_options(typed, "claim", reproduce) == [
        *("--claim=a", "--seed", "7", "-t", "8", "--claim=b", "--list", "--claim=c", "--claim=d")
    ]
    assert arguments.as_options([], "claim", reproduce) == []


def test_an_option_that_takes_one_value_takes_no_two_words() -> None:
    with pytest.raises(ValueError, match="one scenario at a time, not contmec and latency"):
        arguments.as_options(["contmec", "latency"], "scenario", VERBS["up"])


@pytest.mark.parametrize("typed", [["--seed", "x"], ["--seed=x"], ["--list", "--seed", "x"]])
def test_what_is_no_number_is_named_with_its_option(typed: list[str]) -> None:
    with pytest.raises(ValueError, match=r"^--seed: 'x' is not a whole number$"):
        arguments.check_values(typed, reproduce)
    arguments.check_values(["--seed", "3", "-t4"], reproduce)


@pytest.mark.parametrize("typed", ["--claim", "--to", "-t", "--seed --list", "--claim x --claim"])
def test_a_value_that_is_missing_is_named_with_its_option(typed: str) -> None:
    with pytest.raises(ValueError, match=r"^--(claim|to|seed): a value is missing$"):
        arguments.check_values(typed.split(), reproduce)


def test_what_is_meant_is_near() -> None:
    assert arguments.meant("benchh", ["bench", "matrix"]) == "; did you mean bench?"
    assert arguments.meant("zzz", ["bench", "matrix"]) == ""
