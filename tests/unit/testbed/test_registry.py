from __future__ import annotations

import pytest

from testbed.registry import Registry


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
