from __future__ import annotations

import pytest

from testbed.scenario.units import (
    UNITS,
    format_bps,
    format_fixed,
    format_number,
    format_percentage,
    format_share,
    unit_for,
)


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (954_918_032.8, "954.9 Mbit/s"),
        (3e9, "3 Gbit/s"),
        (12.387e9, "12.39 Gbit/s"),
        (20_000, "20 kbit/s"),
        (7, "7 bit/s"),
        (0, "0 Gbit/s"),
    ],
)
def test_a_rate_is_written_in_its_own_unit(rate: float, text: str) -> None:
    assert format_bps(rate) == text


def test_numbers_have_no_exponent() -> None:
    assert format_number(123_456.0) == "123500"


def test_the_largest_rate_chooses_the_unit() -> None:
    assert unit_for([None, 2e6, 5e8]).name == "Mbit/s"
    assert unit_for([]).name == "Gbit/s"


def test_columns() -> None:
    assert format_fixed(954_918_032.8, UNITS[0]) == "0.955"
    assert format_fixed(None, UNITS[0]) == "–"
    assert format_percentage(None) == "–"
    assert format_percentage(0.98) == "98.0 %"


@pytest.mark.parametrize(
    ("share", "text"), [(0.99, "99 %"), (0.94655, "94.66 %"), (0.9896, "98.96 %"), (0, "0 %")]
)
def test_shares(share: float, text: str) -> None:
    assert format_share(share) == text
