from __future__ import annotations

import numpy as np
import pytest

from bench.presentation.figures.series import series
from tests.unit.bench.builders import samples, scenario


def test_a_series_is_the_median_and_the_range_of_the_repetitions() -> None:
    experiment = scenario(measurement={"repetitions": 3})
    table = samples(experiment, lambda _f, _t: 0.0)
    table["bits_per_second"] = table["repetition"].map({0: 5.0, 1: 1.0, 2: 9.0})
    table.loc[table["repetition"] == 1, ["start_s", "end_s"]] += 0.03
    lines = series(table, experiment)
    assert len(lines["A -> C"].seconds) == 100
    assert len(lines["noise"].seconds) == 30
    assert np.all(lines["noise"].median == 5.0)
    assert np.all(lines["noise"].low == 1.0)
    assert np.all(lines["noise"].high == 9.0)
    assert lines["noise"].level == 5.0


def test_the_peak_leaves_out_each_transfers_warm_up() -> None:
    experiment = scenario(measurement={"warm_up": 0.5})

    def burst(flow: str, time: float) -> float:
        begin = 3.0 if flow == "noise" else 0.0
        return 9e9 if time < begin + 0.5 else 1e9

    lines = series(samples(experiment, burst), experiment)
    assert lines["A -> C"].high.max() == pytest.approx(9e9)
    assert {name: line.peak for name, line in lines.items()} == {"A -> C": 1e9, "B -> D": 1e9, "noise": 1e9}


def test_a_transfer_that_is_all_warm_up_has_a_peak() -> None:
    experiment = scenario(measurement={"warm_up": 5})
    assert series(samples(experiment, lambda _f, _t: 7.0), experiment)["noise"].peak == 7.0
