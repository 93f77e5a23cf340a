"""Names that a scenario may say once a part of that name is known."""

from __future__ import annotations

import pytest

from testbed.scenario.names import Names


@pytest.fixture
def names() -> Names:
    names = Names("a bird")
    names.add("owl")
    return names


def test_names_are_known_in_their_order(names: Names) -> None:
    names.add("albatross")
    assert list(names) == ["owl", "albatross"]
    assert names.check("albatross") == "albatross"


@pytest.mark.parametrize("wrong", ["dodo", "", None, 5, ["owl"]])
def test_another_is_refused_with_those_there_are(names: Names, wrong: object) -> None:
    with pytest.raises(ValueError, match=r"^input should be 'owl'$"):
        names.check(wrong)
    names.add("albatross")
    names.add("wren")
    with pytest.raises(ValueError, match=r"^input should be 'owl', 'albatross' or 'wren'$"):
        names.check(wrong)


def test_a_name_is_taken_once(names: Names) -> None:
    with pytest.raises(ValueError, match="there is a bird 'owl' already"):
        names.add("owl")
    assert list(names) == ["owl"]


def test_a_schema_knows_what_is_known_when_it_is_written(names: Names) -> None:
    schema: dict[str, object] = {"type": "string"}
    names.add("albatross")
    names.describe(schema)
    assert schema == {"type": "string", "enum": ["owl", "albatross"]}
