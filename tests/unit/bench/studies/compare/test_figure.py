from __future__ import annotations

import pytest

from bench.presentation.figures.sheet import PRESETS, Sheet
from bench.studies.compare import figure as comparison
from bench.studies.compare.figure import Side
from tests.unit.bench.builders import Rate, record, samples, scenario
from tests.unit.bench.presentation.figures import looked_at
from tests.unit.bench.presentation.figures.looked_at import drawn

EXPECTED = {"A -> C": 95e6, "B -> D": 190e6}


def side(name: str, rate: Rate) -> Side:
    experiment = scenario()
    return Side(f"{name}: a-run, held", experiment, record(experiment), samples(experiment, rate), EXPECTED)


def burst(_flow: str, time: float) -> float:
    return 9e8 if time < 0.2 else 1e8


@pytest.mark.parametrize("sheet", PRESETS.values(), ids=lambda one: one.name)
def test_two_runs_are_one_figure_that_can_be_read(sheet: Sheet) -> None:
    sides = side("A", burst), side("B", lambda _f, time: 5e7 if 3 <= time < 6 else 9e7)
    with drawn(lambda: comparison.draw(sides, "worse", sheet), sheet) as figure:
        assert len(figure.axes) == 2 * len(EXPECTED)
        assert "B compared with A: worse" in looked_at.texts(figure)
        assert looked_at.small(figure, sheet) == []
        assert looked_at.outside(figure) == []
        assert looked_at.beyond_axes(figure) == []
        assert looked_at.covered(figure) == []


def test_shares_are_of_what_is_expected_and_without_the_warm_up() -> None:
    shares = side("A", burst).shares("A -> C")
    assert len(shares) == 95
    assert shares == pytest.approx(100 * 1e8 / 95e6)
