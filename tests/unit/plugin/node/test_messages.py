from __future__ import annotations

import pytest
from concorde.node import messages

from tests.unit.plugin.node.examples import GIGA, TREE, entry


def test_a_refusal_names_the_largest_holders_and_stays_short() -> None:
    entries = [
        entry("c" * 200, 1_000_000 + n, n, network=f"{n % 9}-" + "n" * 190, pod="p" * 250) for n in range(500)
    ]
    text = messages.refusal(TREE, entries, entry("A-1", 9 * GIGA))
    assert len(text) < 900
    assert "8.319 Gbit/s of 8.82 Gbit/s are free" in text
    assert "and 6 more" in text


@pytest.mark.parametrize(
    ("rate", "text"),
    [(999, "999 bit/s"), (1000, "1 kbit/s"), (1_034_153_006, "1.034 Gbit/s"), (10**12, "1 Tbit/s")],
)
def test_rates_for_people(rate: int, text: str) -> None:
    assert messages.rate(rate) == text


def test_a_refusal_says_what_was_for_answers() -> None:
    begins = "no room for a guarantee of"
    assert f"{begins} 1 Gbit/s and 5 Mbit/s for answers on" in messages.refusal(
        TREE, [], entry(answers=5_000_000)
    )
    assert f"{begins} 5 Mbit/s for answers on" in messages.refusal(TREE, [], entry(rate=0, answers=5_000_000))
