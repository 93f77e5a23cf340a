from __future__ import annotations

import pytest

from bench.presentation.figures import sheet
from bench.presentation.figures.sheet import FORMATS, PAGE, PRESETS, Sheet


def test_nothing_asked_for_is_no_sheet_of_its_own() -> None:
    assert sheet.asked() is None
    assert sheet.asked(format="png") == Sheet(formats=("png",))
    assert sheet.asked("page") == PAGE
    assert sheet.asked("column") == PRESETS["column"]


@pytest.mark.parametrize(
    ("width", "inches"), [("3.5in", 3.5), ("252pt", 3.5), ("8.89cm", 3.5), ("88.9 mm", 3.5), ("7in", 7.0)]
)
def test_a_width_has_its_unit(width: str, inches: float) -> None:
    made = sheet.asked(width=width)
    assert made is not None
    assert made.width == inches
    assert made.file("throughput", "pdf") == f"throughput-{inches:g}in-8pt.pdf"


def test_width_and_size_change_a_preset_and_formats_are_chosen() -> None:
    made = sheet.asked("slide", "8in", "10", "pdf,png,pdf")
    assert made is not None
    assert (made.width, made.font, made.formats) == (8.0, 10.0, ("pdf", "png"))
    assert made.room == 8.0 * 8 / 10
    assert sheet.asked(font_size="9pt") == Sheet("7in-9pt", 7.0, 9.0, 300, formats=FORMATS)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"preset": "poster"}, r"--preset: must be one of page, column, slide, not 'poster'"),
        (
            {"width": "3.5"},
            r"--width: must be a number with its unit \(in, cm, mm, pt\), as in 3.5in or 89mm",
        ),
        ({"width": "-3in"}, r"--width: must be a number with its unit"),
        ({"width": "300px"}, r"--width: must be a number with its unit"),
        ({"width": "41in"}, r"--width: must be at most 40in, not 41in"),
        ({"width": "1in"}, r"--width: must be at least 3in for text of 8 points"),
        ({"width": "3.5in", "font_size": "12"}, r"--width: must be at least 4.5in for text of 12 points"),
        ({"font_size": "3"}, r"--font-size: must be a number of points from 4 to 40, not '3'"),
        ({"font_size": "big"}, r"--font-size: must be a number of points"),
        ({"format": "pdf,gif"}, r"--format: must be one or more of svg, pdf, png, not 'gif'"),
        ({"format": ","}, r"--format: must be one or more of svg, pdf, png, not ''"),
    ],
)
def test_what_cannot_be_is_said(given: dict[str, str], words: str) -> None:
    with pytest.raises(LookupError, match=words):
        sheet.asked(**given)


def test_panels_shrink_on_a_sheet_that_is_not_tall_enough() -> None:
    assert PAGE.fitted([2.8, 1.1], 1.0) == [2.8, 1.1]
    low = Sheet(tallest=2.95)
    assert low.fitted([2.8, 1.1], 1.0) == pytest.approx([1.4, 0.55])
