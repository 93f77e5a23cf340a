"""``figures/devices``: a row for each way, in panels beside each other; a mark is the median of rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.presentation.figures import style
from bench.presentation.figures.head import EDGE
from bench.presentation.figures.sheet import SMALL, Sheet
from bench.presentation.figures.style import look
from bench.studies.devices.index import Devices, Measured
from bench.studies.study import Spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Units.
NAMES, RIGHT, GAP, ROW = 1.05, 0.12, 0.3, 0.26
TITLE, BOTTOM, LEAST = 0.3, 0.42, 1.3
MARK = 3.6  # points


@dataclass(frozen=True)
class _Panel:
    """One number of each way."""

    title: str
    axis: str
    value: Callable[[Measured], Spread | None]
    factor: float = 1.0  # to the axis' unit


PANELS = (
    _Panel("new exchange by TCP", "ms, median", lambda one: one.p50_s.get("tcp"), 1000),
    _Panel("one flow of TCP", "Gbit/s", lambda one: one.bits_per_second, 1e-9),
    _Panel("processors, a byte", "s a GB", lambda one: one.per_gigabyte_s),
    _Panel("processors, a packet", "µs", lambda one: one.per_packet_ns, 1e-3),
)


def render(found: Devices, sheet: Sheet) -> dict[str, bytes]:
    """Return the figure by format."""
    return style.files(lambda: draw(found, sheet), sheet)


def draw(found: Devices, sheet: Sheet) -> Figure:
    """Return the figure; ``style.files`` makes files of it. Invalid rounds are left out."""
    ways = [one for one in found.ways if one.bits_per_second]
    rows = -(-len(PANELS) // max(1, int((sheet.room - NAMES - RIGHT + GAP) / (LEAST + GAP))))
    columns = -(-len(PANELS) // rows)
    width = (sheet.room - NAMES - RIGHT - (columns - 1) * GAP) / columns
    height = ROW * max(1, len(ways))
    if rows == 1:
        (height,) = sheet.fitted([height], EDGE + TITLE + BOTTOM)
    figure = sheet.figure(EDGE + rows * (TITLE + height + BOTTOM))
    for number, panel in enumerate(PANELS):
        row, column = divmod(number, columns)
        left, top = NAMES + column * (width + GAP), EDGE + row * (TITLE + height + BOTTOM) + TITLE
        axes = sheet.panel(figure, left, top, width, height)
        _draw(axes, panel, ways, sheet)
        axes.set_yticks(range(len(ways)), [one.way for one in ways] if column == 0 else [""] * len(ways))
    return figure


def _draw(axes: Axes, panel: _Panel, ways: Sequence[Measured], sheet: Sheet) -> None:
    colour, marker = look(0)
    axes.set_title(panel.title, loc="left", fontsize=sheet.points(SMALL))
    axes.set_xlabel(panel.axis, fontsize=sheet.points(SMALL))
    axes.set_ylim(max(1, len(ways)) - 0.5, -0.5)
    axes.tick_params(labelsize=sheet.points(SMALL))
    axes.grid(axis="x")
    for row, one in enumerate(ways):
        if spread := panel.value(one):
            least, median, most = (
                value * panel.factor for value in (spread.least, spread.median, spread.most)
            )
            axes.plot([least, most], [row, row], color=colour, linewidth=sheet.points(0.8))
            axes.plot(
                [median],
                [row],
                color=colour,
                marker=marker,
                markersize=sheet.points(MARK),
                linewidth=0,
                clip_on=False,
            )
    axes.set_xlim(left=0)
