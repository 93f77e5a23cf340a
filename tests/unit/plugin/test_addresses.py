from __future__ import annotations

from concorde import addresses
from hypothesis import given
from hypothesis import strategies as st


@given(st.integers(0, 2**32 - 1))
def test_addresses_survive_being_written(address: int) -> None:
    assert addresses.parse(addresses.dotted(address)) == address
