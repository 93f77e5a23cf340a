from __future__ import annotations

from bench.presentation.palette import COLOURS, DISTURBANCE, MARKERS, SATURATED, STALL, VERDICTS, look, looks
from tests.paths import ROOT
from tests.unit.bench.builders import scenario


def test_flows_have_their_colours_in_order_and_disturbances_one_of_their_own() -> None:
    found = looks(scenario())
    assert [found[name].colour for name in ("A -> C", "B -> D", "noise")] == [*COLOURS[:2], DISTURBANCE]
    assert DISTURBANCE not in COLOURS


def test_thirty_flows_look_different() -> None:
    assert len({look(place) for place in range(30)}) == 30
    assert len({look(place) for place in range(len(COLOURS) * len(MARKERS))}) == len(COLOURS) * len(MARKERS)


def test_pages_on_light_paper_have_the_same_colours() -> None:
    style = (ROOT / "bench" / "presentation" / "templates" / "style.css").read_text().splitlines()[0]
    for name, colour in {**VERDICTS, "stall": STALL, "saturated": SATURATED}.items():
        assert f"--{name}: {colour};" in style
