from __future__ import annotations

from decimal import ROUND_CEILING, Decimal

import pytest
from concorde import quantities
from hypothesis import given
from hypothesis import strategies as st

FACTORS: dict[str, str | int] = {
    "": "1",
    "k": "1e3",
    "M": "1e6",
    "G": "1e9",
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "m": "1e-3",
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1G", 10**9),
        ("500M", 500 * 10**6),
        ("1Gi", 2**30),
        ("1e9", 10**9),
        ("1E9", 10**9),
        ("0.5G", 500 * 10**6),
        ("+1k", 1000),
        (".5M", 500_000),
        ("1500.5", 1501),
        ("1000000m", 1000),
        ("1T", 10**12),
        ("0.001P", 10**12),
        ("0.000001E", 10**12),
        ("2000000000u", 2000),
        ("2000000000000n", 2000),
        ("0.5Ti", 2**39),
        ("0.0005Pi", 562_949_953_422),
        ("0.0000005Ei", 576_460_752_304),
        ("15e+8", 1_500_000_000),
        ("1000000e-3", 1000),
    ],
)
def test_a_quantity_is_read_as_kubernetes_reads_it(text: str, expected: int) -> None:
    assert quantities.bits_per_second(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "G",
        "1g",
        "1 G",
        "-1G",
        "0",
        "999",
        "1.1T",
        "1E",
        "1e",
        "1e9G",
        "1e999",
        "1e009",
        "1e١",
        "1KiB",
        "0x10",
        "١G",
        "NaN",
        "1..5G",
        "1" * 50,
        "1\nG",
        "1GiGi",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        quantities.bits_per_second(text)


@given(st.decimals(0, 10**9, places=3), st.sampled_from(sorted(FACTORS)))
def test_it_agrees_with_exact_decimal_arithmetic(number: Decimal, suffix: str) -> None:
    value = int((number * Decimal(FACTORS[suffix])).to_integral_value(ROUND_CEILING))
    text = f"{number:f}{suffix}"
    if quantities.LEAST <= value <= quantities.MOST:
        assert quantities.bits_per_second(text) == value
    else:
        with pytest.raises(ValueError, match="outside"):
            quantities.bits_per_second(text)


@given(st.text())
def test_no_text_makes_it_fail_otherwise(text: str) -> None:
    try:
        rate = quantities.bits_per_second(text)
    except ValueError:
        return
    assert quantities.LEAST <= rate <= quantities.MOST
