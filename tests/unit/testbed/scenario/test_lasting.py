"""The same experiment in another time."""

from __future__ import annotations

import pytest

from testbed.scenario import Scenario, load
from testbed.scenario.rules import faults
from tests.paths import ROOT

SCENARIOS = ROOT / "scenarios"
NAMES = ("contmec", "kubernetes", "latency", "congested", "examples/partial-overlap")


def read(name: str, *overrides: str, duration: int | None = None) -> Scenario:
    return load(SCENARIOS / f"{name}.yaml", overrides, duration=duration)


def times(scenario: Scenario) -> list[tuple[float, int]]:
    return [(one.start, one.duration) for one in scenario.transfers]


@pytest.mark.parametrize("name", NAMES)
def test_at_its_own_duration_it_stays_as_it_is(name: str) -> None:
    scenario = read(name)
    assert read(name, duration=round(scenario.duration)) == scenario


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seconds", [1, 2, 3, 7, 60])
def test_whatever_it_is_fitted_into_it_can_be_run(name: str, seconds: int) -> None:
    scenario = read(name, duration=seconds)
    assert scenario.duration == seconds
    assert not faults(scenario)


def test_a_disturbance_stays_in_the_middle() -> None:
    """Twice as long, all doubles; in three seconds there is a quiet second before it and one behind it."""
    assert times(read("contmec", duration=20))[-1] == (5.0, 10)
    start, duration = times(read("contmec", duration=3))[-1]
    assert (start, duration) == (1.0, 1)


def test_what_begins_or_ends_with_the_whole_goes_on_doing_so() -> None:
    changes = ["disturbances[0].start=7", "disturbances[0].duration=3", "flows[0].duration=4"]
    *flows, disturbance = read("contmec", *changes, duration=5).transfers
    assert disturbance.end == 5
    assert [flow.start for flow in flows] == [0, 0, 0]
    assert flows[0].duration == 2


@pytest.mark.parametrize(
    ("seconds", "warm_up", "interval"), [(1, 0.25, 0.1), (3, 0.5, 0.3), (10, 0.5, 0.5), (60, 0.5, 0.5)]
)
def test_warm_up_and_samples_leave_enough(seconds: int, warm_up: float, interval: float) -> None:
    flows = ["disturbances=[]", "measurement.interval=0.5"]
    found = read("contmec", *flows, duration=seconds).measurement
    assert found.warm_up == pytest.approx(warm_up)
    assert found.interval == pytest.approx(interval)


def test_where_nothing_is_sent_that_is_the_fault() -> None:
    with pytest.raises(LookupError, match="flows"):
        read("contmec", "flows=[]", "disturbances=[]", duration=3)
