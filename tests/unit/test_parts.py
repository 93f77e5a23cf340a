from __future__ import annotations

from bench.presentation.figures.registry import FIGURES
from tests import parts


def known() -> list[list[str]]:
    return [list(one) for one in parts.DICTIONARIES]


def test_afterwards_parts_are_known_as_before_in_their_order() -> None:
    before = known()
    with parts.put_back():
        FIGURES["throughput"] = FIGURES.pop("throughput")  # the last one now
        for each in parts.DICTIONARIES:
            each["another"] = None
        assert known() != before
    assert known() == before
    assert next(iter(FIGURES)) == "throughput"
