from __future__ import annotations

from typing import NamedTuple

import pytest

from testbed.registry import KINDS, Registry


class Owl:
    """A part with settings."""

    settings = 3


class Perch(NamedTuple):
    """A part without."""

    height: int


def test_parts_are_known_by_name_in_the_order_in_which_they_were_registered() -> None:
    birds = Registry[int]("bird")
    birds.register("owl", 2)
    birds.register("auk", 1)
    assert list(birds) == ["owl", "auk"]
    assert birds.named("auk") == 1


def test_a_name_that_is_taken_replaces_nobodys_part() -> None:
    owls = Registry[int]("owl")
    owls.register("barn", 1)
    with pytest.raises(ValueError, match=r"^there is an owl 'barn' already$"):
        owls.register("barn", 2)
    assert owls.named("barn") == 1


def test_of_a_name_that_none_has_is_said_which_there_are() -> None:
    studies = Registry[int]("study", "studies")
    studies.register("matrix", 1)
    studies.register("places", 2)
    with pytest.raises(LookupError, match=r"^no study 'x' \(studies: matrix, places\)$"):
        studies.named("x")


@pytest.mark.parametrize("wrong", ["dodo", "", None, 5, ["owl"]])
def test_a_field_s_name_is_checked_against_those_there_are(wrong: object) -> None:
    birds = Registry[int]("bird")
    birds.register("owl", 1)
    with pytest.raises(ValueError, match=r"^input should be 'owl'$"):
        birds.check(wrong)
    birds.register("auk", 2)
    birds.register("wren", 3)
    assert birds.check("wren") == "wren"
    with pytest.raises(ValueError, match=r"^input should be 'owl', 'auk' or 'wren'$"):
        birds.check(wrong)
    with pytest.raises(ValueError, match=r"\(did you mean 'wren'\?\)$"):
        birds.check("wrem")


def test_a_schema_knows_what_is_known_when_it_is_written() -> None:
    birds = Registry[int]("bird")
    schema: dict[str, object] = {"type": "string"}
    birds.register("owl", 1)
    birds.describe(schema)
    assert schema == {"type": "string", "enum": ["owl"]}


def test_a_part_is_handed_its_settings_and_only_it(monkeypatch: pytest.MonkeyPatch) -> None:
    birds = Registry[Owl | Perch]("bird", word="bird")
    monkeypatch.delitem(KINDS, "bird")
    birds.register("owl", Owl())
    birds.register("perch", Perch(2))
    said = {"bird": {"owl": 5}, "fish": {"perch": 7}}
    assert birds.handed("owl", None) == birds.handed("owl", {"bird": {}}) == (3,)
    assert birds.handed("owl", said) == (5,)
    assert birds.handed("perch", said) == birds.handed("dodo", said) == ()
    changed = birds.configured("owl", said)
    assert isinstance(changed, Owl)
    assert (changed.settings, Owl.settings) == (5, 3)
    assert birds.configured("perch", said) is birds["perch"]
