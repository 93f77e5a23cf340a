"""What a figure is drawn for: a column, a page, a slide; how wide, with how large a text, in which formats.

Whatever the text's size, figures are laid out for text of 8 points, in *units*: inches, where text has that
size. ``Sheet`` says how many there are, and turns units into inches, and points of 8-point text into points.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bench.analysis.summary import Summary
from bench.recording.records import RunRecord
from bench.recording.rounds import Round
from testbed.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


FORMATS = ("svg", "pdf", "png")
UNITS = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72}  # inches
TEXT, SMALL = 8.0, 7.0  # points of what is read first, and of the rest, where text has 8
NARROWEST, WIDEST = 3.0, 40.0  # units of room that a figure needs; inches that it may have
SMALLEST, LARGEST = 4.0, 40.0  # points
LEAST_SHARE = 0.45  # of its height that a panel keeps on a sheet that is not tall enough


@dataclass(frozen=True)
class Sheet:
    """How a figure becomes files."""

    name: str = ""  # what the names of its files end with; empty: those that a recording always has
    width: float = 7.0  # inches
    font: float = 8.0  # points
    dpi: int = 200
    tallest: float | None = None  # inches
    formats: tuple[str, ...] = FORMATS

    @property
    def scale(self) -> float:
        """How many inches a unit has."""
        return self.font / TEXT

    @property
    def room(self) -> float:
        """The width in units."""
        return self.width / self.scale

    def points(self, points: float) -> float:
        """Return the size of what has so many points beside text of 8."""
        return points * self.scale

    def figure(self, height: float) -> Figure:
        """Return an empty figure of so many units."""
        from matplotlib.figure import Figure

        return Figure(figsize=(self.width, height * self.scale))

    def panel(self, figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
        """Return a panel of so many units, ``top`` of them below the figure's upper edge."""
        total = figure.get_figheight() / self.scale
        bottom = (total - top - height) / total
        return figure.add_axes((left / self.room, bottom, width / self.room, height / total))

    def fitted(self, panels: Sequence[float], rest: float) -> list[float]:
        """Return the heights of panels: smaller where there is no room for them and the rest, in units."""
        if self.tallest is None:
            return list(panels)
        share = (self.tallest / self.scale - rest) / sum(panels)
        return [height * min(1.0, max(LEAST_SHARE, share)) for height in panels]

    def file(self, name: str, kind: str) -> str:
        """Return what the file of a figure is called."""
        return f"{name}-{self.name}.{kind}" if self.name else f"{name}.{kind}"


PAGE = Sheet()
# A column of two on a page of the IEEE or the ACM; a slide of 10 by 5.6 inches, below its title.
PRESETS = {
    "page": PAGE,
    "column": Sheet("column", 3.5, 8.0, dpi=300),
    "slide": Sheet("slide", 10.0, 12.0, tallest=5.2),
}


def asked(preset: str = "", width: str = "", font_size: str = "", format: str = "") -> Sheet | None:
    """Return the sheet that options ask for; None if they ask for none. Raises LookupError."""
    if not (preset or width or font_size or format):
        return None
    if preset and preset not in PRESETS:
        raise LookupError(f"--preset: must be one of {', '.join(PRESETS)}, not {preset!r}")
    sheet = PRESETS[preset or "page"]
    if width or font_size:
        inches = _width(width) if width else sheet.width
        points = _font(font_size) if font_size else sheet.font
        name = f"{inches:g}in-{points:g}pt"
        tallest = sheet.tallest if not width else None
        sheet = Sheet(name, inches, points, PRESETS["column"].dpi, tallest)
    if sheet.room < NARROWEST:
        least = f"{NARROWEST * sheet.scale:.2g}in"
        raise LookupError(f"--width: must be at least {least} for text of {sheet.font:g} points")
    return replace(sheet, formats=_formats(format)) if format else sheet


def _width(text: str) -> float:
    match = re.fullmatch(rf"(\d{{1,5}}(?:\.\d{{1,5}})?) ?({'|'.join(UNITS)})", text)
    if match is None:
        raise LookupError(
            f"--width: must be a number with its unit ({', '.join(UNITS)}), as in 3.5in or 89mm, not {text!r}"
        )
    inches = round(float(match[1]) * UNITS[match[2]], 4)
    if inches > WIDEST:
        raise LookupError(f"--width: must be at most {WIDEST:g}in, not {text}")
    return inches


def _font(text: str) -> float:
    match = re.fullmatch(r"(\d{1,3}(?:\.\d{1,2})?) ?(pt)?", text)
    if match is None or not SMALLEST <= float(match[1]) <= LARGEST:
        raise LookupError(
            f"--font-size: must be a number of points from {SMALLEST:g} to {LARGEST:g}, not {text!r}"
        )
    return float(match[1])


def _formats(text: str) -> tuple[str, ...]:
    chosen = [word.strip() for word in text.split(",")]
    for word in chosen:
        if word not in FORMATS:
            raise LookupError(f"--format: must be one or more of {', '.join(FORMATS)}, not {word!r}")
    return tuple(dict.fromkeys(chosen))


@dataclass(frozen=True)
class Subject:
    """One recording, analysed."""

    scenario: Scenario
    record: RunRecord
    summary: Summary
    samples: pd.DataFrame  # as bench.analysis.samples has them; empty without traffic
    exchanges: pd.DataFrame  # as bench.analysis.exchanges has them; empty without requests
    scale: float = 1.0  # what every rate was multiplied by, as far as that was recorded
    # What nodes' agents granted in the first repetition, by node, where there are any.
    rounds: Mapping[str, Sequence[Round]] = field(default_factory=dict)
