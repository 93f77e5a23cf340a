"""What an eye would find fault with in a figure: small text, and what lies where it cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from bench.presentation.figures import style
from bench.presentation.figures.sheet import SMALL, TEXT, Sheet

HAIR = 0.5  # pixels


@contextmanager
def drawn(draw: Callable[[], Figure], sheet: Sheet) -> Iterator[Figure]:
    """Lend a figure as ``style.files`` draws it, with everything in its place."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(style.parameters(sheet))
        figure = draw()
        figure.draw_without_rendering()
        yield figure


def texts(figure: Figure) -> dict[str, Text]:
    """Return everything that is written, by its words."""
    found = [one for one in figure.findobj(Text) if isinstance(one, Text) and one.get_visible()]
    undrawn = set(_undrawn(figure))
    return {one.get_text(): one for one in found if one.get_text().strip() and one not in undrawn}


def _undrawn(figure: Figure) -> Iterator[Text]:
    """Yield the numbers of ticks beyond the ends of their axes, which are there and never drawn."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                if not low <= tick.get_loc() <= high:
                    yield from (tick.label1, tick.label2)


def small(figure: Figure, sheet: Sheet) -> list[str]:
    """Return what is written smaller than the sheet's small text."""
    least = sheet.font * SMALL / TEXT
    return [words for words, text in texts(figure).items() if float(text.get_fontsize()) < least - 1e-9]


def outside(figure: Figure) -> list[str]:
    """Return what is written that the figure's edges cut off."""
    whole = figure.bbox.padded(HAIR)
    return [words for words, text in texts(figure).items() if not _holds(whole, text.get_window_extent())]


def beyond_axes(figure: Figure) -> list[str]:
    """Return the lines that leave their axes where they would be cut off."""
    return [
        f"{line.get_color()} {line.get_xydata()}"
        for axes in figure.axes
        for line in axes.lines
        if line.get_clip_on() and line.get_transform() == axes.transData
        if not _within(axes, line.get_xydata())
    ]


def covered(figure: Figure) -> list[str]:
    """Return what of the keys lies on a panel."""
    boxes = [axes.get_window_extent().padded(-HAIR) for axes in figure.axes]
    return [
        text.get_text()
        for legend in figure.legends
        for text in legend.get_texts()
        if any(text.get_window_extent().overlaps(box) for box in boxes)
    ]


def _holds(outer: Bbox, inner: Bbox) -> bool:
    return bool(
        outer.x0 <= inner.x0 and inner.x1 <= outer.x1 and outer.y0 <= inner.y0 and inner.y1 <= outer.y1
    )


def _within(axes: Axes, points: Any) -> bool:
    pixels = axes.transData.transform(points)
    box = axes.get_window_extent().padded(HAIR)
    return bool(((pixels >= box.min) & (pixels <= box.max)).all())
