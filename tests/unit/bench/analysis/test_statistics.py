from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.analysis import statistics
from bench.analysis.statistics import Interval

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


# Extra hours of sleep with two soporifics: Cushny and Peebles 1905, used by Student, "The probable error of a
# mean", Biometrika 6 (1908). R has them as its data set "sleep", and what is expected below is printed by the
# examples of its help pages of t.test and sleep (R Core Team).
DRUG_1 = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
DRUG_2 = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]

NORMAL = st.floats(min_value=-1e9, max_value=1e9)


def series(count: int, lag1: float, seed: int) -> Any:
    """An autoregressive series around 0, with a variance of 1."""
    return runs(1, count, lag1, seed)[0]


def runs(number: int, count: int, lag1: float, seed: int) -> Any:
    noise = np.random.default_rng(seed).normal(size=(number, count))
    values = noise.copy()
    for moment in range(1, count):
        values[:, moment] = lag1 * values[:, moment - 1] + math.sqrt(1 - lag1**2) * noise[:, moment]
    return values


def test_students_interval_as_published() -> None:
    found = statistics.student([one - other for one, other in zip(DRUG_1, DRUG_2, strict=True)])
    assert found == pytest.approx((-2.4598858, -0.7001142), abs=5e-8)


def test_welchs_interval_as_published() -> None:
    found = statistics.welch(DRUG_2, DRUG_1)
    assert found.difference == pytest.approx(-1.58)
    assert found.interval == pytest.approx((-3.3654832, 0.2054832), abs=5e-8)


@given(values=st.lists(NORMAL, min_size=2, max_size=20), factor=st.floats(0.5, 2), shift=NORMAL)
def test_intervals_follow_the_values(values: list[float], factor: float, shift: float) -> None:
    low, high = statistics.student(values)
    assert low <= sum(values) / len(values) + 1e-6 <= high + 2e-6
    moved = statistics.student([factor * value + shift for value in values])
    assert moved == pytest.approx((factor * low + shift, factor * high + shift), rel=1e-6, abs=1e-2)


def test_what_does_not_vary_is_known() -> None:
    assert statistics.student([5.0] * 5) == (5.0, 5.0)
    assert statistics.welch([5.0] * 3, [4.0] * 3) == (-1.0, Interval(-1.0, -1.0))
    assert statistics.block_length(np.full(44, 5.0)) == 4
    assert statistics.lag1([np.full(44, 5.0)]) is None


def test_one_value_has_no_interval() -> None:
    for fails in (lambda: statistics.student([1.0]), lambda: statistics.welch([1.0, 2.0], [1.0])):
        with pytest.raises(ValueError, match="at least two"):
            fails()
    with pytest.raises(ValueError, match="needs samples"):
        statistics.resample([np.array([])], 1)


def test_blocks_keep_their_order_and_go_on_at_the_beginning() -> None:
    values = np.array([1.0, 10.0, 100.0, 1000.0, 10000.0])
    starts = np.array([[1, 3, 0], [4, 4, 4]])
    (found,) = statistics.sums([values], starts, 2)
    assert found.tolist() == pytest.approx([10 + 100 + 1000 + 10000 + 1, 2 * (10000 + 1) + 10000])


def test_the_draws_are_always_the_same_and_those_of_another_stream_are_others() -> None:
    assert statistics.draw(44, 15)[:2].tolist() == [[27, 9, 2], [8, 11, 18]]
    assert statistics.draw(44, 15).tolist() != statistics.draw(44, 15, stream=1).tolist()
    assert statistics.draw(44, 15).shape == (statistics.RESAMPLES, 3)


def test_neighbouring_samples_that_take_turns() -> None:
    up_and_down = np.array([1.0, -1.0] * 50)
    assert statistics.lag1([up_and_down]) == pytest.approx(-0.99)
    # Each around its own mean.
    assert statistics.lag1([up_and_down, 1000 + up_and_down]) == pytest.approx(-0.99)


def test_neighbours_are_told_whatever_the_unit_and_of_what_does_not_vary_nothing() -> None:
    values = np.array([1.0, 2.0, 1.0, 2.0, 1.0])
    found = statistics.lag1([values])
    assert found == pytest.approx(-0.96 / 1.2)  # around 1.4: four products of -0.24, squares of 0.16 and 0.36
    assert statistics.lag1([1e-3 * values]) == pytest.approx(found)
    assert statistics.lag1([values, 10 + values]) == pytest.approx(found)
    assert statistics.lag1([np.ones(5)]) is None


@pytest.mark.long(one_in=0)
@pytest.mark.filterwarnings("ignore")  # what arch imports has warnings of its own
def test_the_bootstrap_is_that_of_arch() -> None:
    from arch.bootstrap import CircularBlockBootstrap, optimal_block_length

    for seed, (count, lag1) in enumerate((n, r) for n in (12, 44, 100, 600) for r in (-0.6, 0.0, 0.5, 0.9)):
        values = series(count, lag1, seed)
        best = float(optimal_block_length(values)["circular"].iloc[0])
        block = statistics.block_length(values)
        assert block == max(math.ceil(count ** (1 / 3)), math.ceil(best))

        reference = CircularBlockBootstrap(block, values, seed=np.random.default_rng(seed))
        drawn, expected = [], []
        for (resampled,), _ in reference.bootstrap(20):
            drawn.append(reference.index[::block])
            expected.append(resampled.sum())
        assert statistics.sums([values], np.array(drawn), block)[0] == pytest.approx(expected)

        ours = statistics.percentiles(statistics.resample([values], block)[0] / count)
        theirs = reference.conf_int(np.mean, 5000, method="percentile").ravel()
        assert ours == pytest.approx(theirs, abs=0.1 * (ours.high - ours.low))


def test_what_is_widened_has_the_variance_of_a_mean() -> None:
    values = series(44, 0.0, 1)
    resampled = statistics.resample([values], 11)[0] / 44
    assert statistics.widened(resampled, 0.0, 11, 44) == pytest.approx(resampled * math.sqrt(4 / 3))


@pytest.mark.long(one_in=0)
@pytest.mark.parametrize("lag1", [-0.6, 0.0, 0.5])
def test_over_repetitions_95_percent_are_95_percent(lag1: float) -> None:
    """1,000 runs of 10 repetitions of 44 samples; repetitions differ by a third of a sample's deviation."""
    noise = np.random.default_rng(7)
    covered = 0
    for number in range(1000):
        means = runs(10, 44, lag1, number).mean(axis=1) + noise.normal(scale=1 / 3, size=10)
        low, high = statistics.student(means.tolist())
        covered += low <= 0 <= high
    assert 930 <= covered <= 970


@pytest.mark.long(one_in=0)
@pytest.mark.parametrize(("lag1", "least"), [(-0.6, 925), (0.0, 905), (0.5, 840)])
def test_within_a_run_of_44_samples_they_are_somewhat_less(lag1: float, least: int) -> None:
    covered = 0
    for number in range(1000):
        values = series(44, lag1, number)
        block = statistics.block_length(values)
        resampled = statistics.resample([values], block)[0] / 44
        low, high = statistics.percentiles(statistics.widened(resampled, values.mean(), block, 44))
        covered += low <= 0 <= high
    assert least <= covered <= 970


@pytest.mark.parametrize(
    ("count", "quantile"), [(0, 0.0), (5, 0.0), (20, 0.5), (210, 200 / 210), (1000, 0.99)]
)
def test_few_samples_tell_a_lower_quantile(count: int, quantile: float) -> None:
    assert statistics.supported(0.99, count) == pytest.approx(quantile)
