from __future__ import annotations

import io
import re
import zlib
from collections.abc import Iterator

from fontTools.ttLib import TTFont  # type: ignore[import-untyped]
from matplotlib.figure import Figure

from bench.presentation.figures import style
from bench.presentation.figures.sheet import Sheet
from bench.presentation.figures.style import (
    COLOURS,
    DISTURBANCE,
    MARKERS,
    SATURATED,
    STALL,
    VERDICTS,
    look,
    looks,
)
from tests.paths import ROOT
from tests.unit.bench.builders import scenario

TRUETYPE = b"\x00\x01\x00\x00"


def written() -> Figure:
    """A figure with text whose letters a font would kern, and join."""
    figure = Figure(figsize=(1, 1))
    figure.text(0, 0, "AV fi")
    return figure


def fonts(pdf: bytes) -> Iterator[TTFont]:
    """The fonts that are embedded in a PDF."""
    for packed in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL):
        content = zlib.decompressobj().decompress(packed)
        if content.startswith(TRUETYPE):
            yield TTFont(io.BytesIO(content))


def test_the_fonts_of_a_pdf_do_not_say_how_to_lay_them_out() -> None:
    """If not, matplotlib loads fonts by other means than those that are changed."""
    found = [set(font.keys()) for font in fonts(style.files(written, Sheet(formats=("pdf",)))["pdf"])]
    assert found
    assert all("glyf" in tables and not tables & style.LAYOUT for tables in found)


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
