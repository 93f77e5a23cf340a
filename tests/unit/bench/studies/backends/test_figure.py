from __future__ import annotations

import pytest

from bench.presentation.figures.sheet import PRESETS, Sheet
from bench.studies.backends import figure
from bench.studies.backends.index import read
from tests.paths import ROOT
from tests.unit.bench.presentation.figures import looked_at
from tests.unit.bench.presentation.figures.looked_at import drawn


@pytest.mark.parametrize("sheet", PRESETS.values(), ids=lambda one: one.name or "page")
@pytest.mark.long(one_in=3)
def test_nothing_is_small_or_cut_off(sheet: Sheet) -> None:
    found = read(ROOT / "reports" / "reference" / "backends")
    with drawn(lambda: figure.draw(found, sheet), sheet) as made:
        assert looked_at.small(made, sheet) == []
        assert looked_at.outside(made) == []
        assert looked_at.beyond_axes(made) == []
        assert looked_at.covered(made) == []
