"""``figures/services``: a row for each case, a mark for each mode, in three panels beside each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.presentation.figures import style
from bench.presentation.figures.head import EDGE, Key
from bench.presentation.figures.sheet import SMALL, Sheet
from bench.presentation.figures.style import MUTED, Look, look
from bench.studies.services.index import Measured, Services
from edge.services.hints import MODES, MOST_LOAD

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Units.
NAMES, RIGHT, GAP, ROW = 0.95, 0.12, 0.3, 0.3
TITLE, BOTTOM, LEAST = 0.3, 0.42, 1.5
APART = 0.155  # of a row, between the marks of two modes: they touch, and do not hide each other
MARK = 3.2  # points
LIMIT = float(MOST_LOAD) * 100  # per cent of an even load


@dataclass(frozen=True)
class _Panel:
    """One number of each case and mode."""

    title: str
    axis: str
    value: Callable[[Measured], float | None]
    logarithmic: bool = False
    limit: float | None = None  # that nobody should exceed


PANELS = (
    _Panel("between zones", "bytes a request", lambda one: one.between_each),
    _Panel("median of all", "ms", lambda one: _ms(one.took.p50_s), logarithmic=True),
    _Panel("the endpoint asked most", "% of an even load", lambda one: one.worst * 100, limit=LIMIT),
)


def render(found: Services, sheet: Sheet) -> dict[str, bytes]:
    """Return the figure by format."""
    return style.files(lambda: draw(found, sheet), sheet)


def draw(found: Services, sheet: Sheet) -> Figure:
    """Return the figure; ``style.files`` makes files of it. Invalid runs are left out."""
    looks = {mode: look(place) for place, mode in enumerate(MODES)}
    cases = [case for case, modes in found.measured.items() if len(modes) > 1] or [*found.measured]
    entries: style.Entries = [
        (f"hints {mode}", style.line(color=colour, marker=marker, markersize=MARK, linewidth=0))
        for mode, (colour, marker) in looks.items()
    ]
    entries.append((f"{LIMIT:.0f} %", style.line(color=MUTED, linestyle=":", linewidth=0.8)))
    key = Key(sheet, entries, EDGE)
    columns = min(len(PANELS), max(1, int((sheet.room - NAMES - RIGHT + GAP) / (LEAST + GAP))))
    width = (sheet.room - NAMES - RIGHT - (columns - 1) * GAP) / columns
    height = ROW * max(1, len(cases))
    rows = -(-len(PANELS) // columns)
    top = EDGE + key.height
    (height,) = sheet.fitted([height], top + TITLE + BOTTOM) if rows == 1 else (height,)
    figure = sheet.figure(top + rows * (TITLE + height + BOTTOM))
    for number, panel in enumerate(PANELS):
        row, column = divmod(number, columns)
        axes = sheet.panel(
            figure,
            NAMES + column * (width + GAP),
            top + row * (TITLE + height + BOTTOM) + TITLE,
            width,
            height,
        )
        _draw(axes, panel, [found.measured[case] for case in cases], looks, sheet)
        axes.set_yticks(range(len(cases)), cases if column == 0 else [""] * len(cases))
    key.draw(figure, EDGE)
    return figure


def _draw(
    axes: Axes, panel: _Panel, cases: Sequence[dict[str, Measured]], looks: dict[str, Look], sheet: Sheet
) -> None:
    axes.set_title(panel.title, loc="left", fontsize=sheet.points(SMALL))
    axes.set_xlabel(panel.axis, fontsize=sheet.points(SMALL))
    axes.set_ylim(len(cases) - 0.5, -0.5)
    axes.tick_params(labelsize=sheet.points(SMALL))
    axes.grid(axis="x")
    for place, (mode, (colour, marker)) in enumerate(looks.items()):
        offset = (place - (len(looks) - 1) / 2) * APART
        points = [
            (value, row + offset)
            for row, modes in enumerate(cases)
            if mode in modes and not modes[mode].invalid and (value := panel.value(modes[mode])) is not None
        ]
        if points:
            axes.plot(
                *zip(*points, strict=True),
                color=colour,
                marker=marker,
                markersize=sheet.points(MARK),
                linewidth=0,
                clip_on=False,
            )
    if panel.logarithmic:
        _logarithmic(axes)
    else:
        axes.set_xlim(left=0)
    if panel.limit is not None:
        axes.axvline(panel.limit, color=MUTED, linestyle=":", linewidth=sheet.points(0.8))


def _logarithmic(axes: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.set_xlim(min(low, 0.1), max(high, 30))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000
