from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.analysis import statistics

RATES = st.lists(st.floats(min_value=0, max_value=1e11), min_size=1, max_size=50)


def test_the_mean_is_all_bits_over_all_seconds() -> None:
    assert statistics.mean(np.array([100.0, 10.0]), np.array([0.1, 0.9])) == pytest.approx(19.0)


@given(rates=RATES)
def test_equal_times_give_the_plain_mean(rates: list[float]) -> None:
    values = np.array(rates)
    assert statistics.mean(values, np.full(len(rates), 0.1)) == pytest.approx(float(values.mean()))


def test_the_first_percentile() -> None:
    assert statistics.p01(np.arange(101.0)) == 1.0


@given(rates=RATES, threshold=st.floats(min_value=0, max_value=1e11))
def test_attainment_counts_samples_at_the_threshold(rates: list[float], threshold: float) -> None:
    reached = sum(rate >= threshold for rate in rates) / len(rates)
    assert statistics.attainment(np.array(rates), threshold) == pytest.approx(reached)


def test_overlaps() -> None:
    shared = statistics.overlaps(
        np.array([0.0, 1.0, 5.0]), np.array([1.0, 2.0, 6.0]), np.array([0.5, 1.75]), np.array([1.25, 3.0])
    )
    assert shared.tolist() == pytest.approx([0.5, 0.5, 0.0])


def test_no_samples_have_no_statistics() -> None:
    none = np.array([])
    with pytest.raises(ValueError, match="needs samples"):
        statistics.mean(none, none)
    with pytest.raises(ValueError, match="needs samples"):
        statistics.p01(none)
    with pytest.raises(ValueError, match="needs samples"):
        statistics.attainment(none, 1.0)
