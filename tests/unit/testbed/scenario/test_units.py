from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.scenario.units import (
    UNITS,
    format_bps,
    format_fixed,
    format_number,
    format_percentage,
    format_rate,
    format_share,
    parse_rate,
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


@pytest.mark.parametrize(
    ("text", "bits_per_second"),
    [
        ("1G", 10**9),
        ("1Gi", 2**30),
        ("0.5M", 500_000),
        ("250k", 250_000),
        ("1e9", 10**9),
        ("12E6", 12_000_000),
        (1000, 1000),
        (2.5e9, 2_500_000_000),
        (".5G", 500_000_000),
    ],
)
def test_quantities_are_bits_per_second(text: object, bits_per_second: int) -> None:
    assert parse_rate(text) == bits_per_second


@pytest.mark.parametrize(
    "wrong", ["1Gb", "1 G", "-1G", "", "G", "1K", "0", "0.1", "1e999", "nan", None, True, [], "1G\n", "١G"]
)
def test_what_is_no_quantity_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"not a (positive )?rate"):
        parse_rate(wrong)


@given(st.integers(min_value=1, max_value=10**15))
def test_formatting_loses_nothing(rate: int) -> None:
    assert parse_rate(format_rate(rate)) == rate
