from __future__ import annotations

import math

import numpy as np
import pytest

from bench.analysis import spread, statistics
from bench.analysis.spread import IntervalSummary, Series


def repetition(mean: float, count: int = 44, step: float = 1.0) -> Series:
    """Samples above and below a mean in turns, of a tenth of a second each."""
    rates = mean + step * np.where(np.arange(count) % 2, -1.0, 1.0)
    return Series(rates, np.full(count, 0.1), rates >= 100)


def ends(found: IntervalSummary) -> tuple[float, float]:
    return found.low, found.high


def test_five_repetitions_are_the_unit() -> None:
    means = [100.0, 101.0, 102.0, 103.0, 104.0]
    found = spread.spread([repetition(mean) for mean in means], 100.0)
    assert found is not None
    assert found.attainment is not None
    assert (found.mean_bps.unit, found.block_length, found.seed) == ("repetitions", None, None)
    assert ends(found.mean_bps) == pytest.approx(statistics.student(means), abs=0.05)
    # 1 of 2 samples reach 100 in the first, all in the others.
    low, high = statistics.student([0.5, 1, 1, 1, 1])
    assert ends(found.attainment) == pytest.approx((low, 1.0), abs=1e-6)
    assert high > 1


@pytest.mark.parametrize("count", [1, 2, 4])
def test_fewer_tell_of_themselves(count: int) -> None:
    found = spread.spread([repetition(100.0 + 50 * number) for number in range(count)], None)
    assert found is not None
    assert found.mean_bps.unit == "within this run"
    assert found.block_length is not None
    assert (found.attainment, found.shortfall) == (None, None)
    assert found.lag1 == pytest.approx(-1, abs=0.05)
    # How far repetitions are apart is nothing that blocks within them know of.
    mean = 100 + 25 * (count - 1)
    assert mean - 1 < found.mean_bps.low <= mean <= found.mean_bps.high < mean + 1


def test_few_samples_tell_nothing() -> None:
    assert spread.spread([repetition(100.0, 9)], None) is None
    assert spread.spread([], None) is None


def test_the_shortfall_is_what_the_mean_misses() -> None:
    means = (97.0, 98.0, 99.0, 100.0, 101.0)
    low, high = statistics.student(means)
    for expected, missed in ((100.0, (0.0, 1 - low / 100)), (200.0, (1 - high / 200, 1 - low / 200))):
        found = spread.spread([repetition(mean) for mean in means], expected)
        assert found is not None
        assert found.shortfall is not None
        assert ends(found.shortfall) == pytest.approx(missed, abs=1e-6)


def test_a_disturbance_is_compared_with_the_quiet_of_its_own_repetition() -> None:
    quiet = {number: repetition(100.0 + 10 * number) for number in range(5)}
    disturbed = {number: repetition(98.0 + 10 * number + 0.1 * (number % 2), 50) for number in range(5)}
    found = spread.effect(quiet, disturbed, 100.0, 0.02)
    assert found is not None
    assert (found.interval.unit, found.threshold) == ("repetitions", 0.02)
    assert found.share == pytest.approx(-0.0196)
    # Repetitions are 10 apart from each other; what the disturbance does in each is not.
    student = statistics.student([-0.02, -0.019, -0.02, -0.019, -0.02])
    assert ends(found.interval) == pytest.approx(student, abs=1e-6)


def test_a_difference_within_a_run_knows_the_noise_of_both_phases() -> None:
    rng = np.random.default_rng(1)

    def noisy(mean: float, deviation: float) -> Series:
        rates = mean + deviation * rng.normal(size=50)
        return Series(rates, np.full(50, 0.1), rates >= 0)

    quiet, disturbed = {0: noisy(100, 3.0)}, {0: noisy(90, 4.0)}
    found = spread.effect(quiet, disturbed, 1.0, 0.02)
    alone = [spread.spread(list(phase.values()), None) for phase in (quiet, disturbed)]
    assert found is not None
    assert found.interval.unit == "within this run"
    assert found.interval.low < found.share < found.interval.high < -7
    widths = [one.mean_bps.high - one.mean_bps.low for one in alone if one is not None]
    both = found.interval.high - found.interval.low
    assert both == pytest.approx(math.hypot(*widths), rel=0.15)


def test_a_repetition_with_one_phase_is_compared_with_nothing() -> None:
    assert spread.effect({0: repetition(100.0)}, {1: repetition(90.0)}, 100.0, 0.02) is None
    assert spread.effect({0: repetition(100.0)}, {0: repetition(90.0, 9)}, 100.0, 0.02) is None
