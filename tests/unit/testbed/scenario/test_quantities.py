import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.scenario.quantities import format_rate, parse_rate


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
