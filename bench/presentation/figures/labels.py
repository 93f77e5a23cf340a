"""Names beside the lines they belong to, at the right of a panel and never on top of each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.presentation.figures.sheet import SMALL, TEXT, Sheet
from bench.presentation.figures.style import INK, MUTED, Look
from testbed.scenario.units import format_bps

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST_NAME = 20
# Up to so many labels have room for a remark on a second line.
MOST_WITH_REMARKS = 8


@dataclass(frozen=True)
class Label:
    """One line's name."""

    name: str
    remark: str
    level: float  # where the line is, in units above the panel's bottom
    look: Look


def gap(count: int) -> float:
    """Return the units from one label to the next if there are so many."""
    return 0.3 if count <= MOST_WITH_REMARKS else 0.16


def spread(wanted: Sequence[float], gap: float, room: float) -> list[float]:
    """Return positions near those wanted, in the same order, at least ``gap`` apart, within 0 to ``room``.

    If they cannot all fit they keep their gap and leave the room at the top.
    """
    order = sorted(range(len(wanted)), key=lambda index: (wanted[index], index))
    places = [0.0] * len(wanted)
    limit = 0.0
    for index in order:
        places[index] = limit = max(wanted[index], limit)
        limit += gap
    limit = max(room, gap * (len(wanted) - 1))
    for index in reversed(order):
        places[index] = limit = min(places[index], limit)
        limit -= gap
    return places


def draw(axes: Axes, labels: Sequence[Label], width: float, height: float, sheet: Sheet) -> None:
    """Draw the labels of a panel of ``width`` by ``height`` units, each with a leader in its line's look."""
    places = spread([label.level for label in labels], gap(len(labels)), height)
    for label, place in zip(labels, places, strict=True):
        level, beside = label.level / height, place / height
        axes.plot(
            [1 + units / width for units in (0.04, 0.14, 0.2, 0.27)],
            [level, level, beside, beside],
            color=label.look.colour,
            marker=label.look.marker,
            markersize=sheet.points(3.5),
            markeredgewidth=0,
            markevery=[3],
            linewidth=sheet.points(0.8),
            transform=axes.transAxes,
            clip_on=False,
        )
        remarks = len(labels) <= MOST_WITH_REMARKS
        x = 1 + 0.34 / width
        anchor = "bottom" if remarks else "center"
        _write(axes, x, beside, shortened(label.name), sheet.points(TEXT), anchor)
        if remarks:
            _write(axes, x, beside, label.remark, sheet.points(SMALL), "top", MUTED)


def shortened(name: str) -> str:
    """Return a name that fits; long ones differ at their beginning or end more often than in the middle."""
    name = arrowed(name)
    half = LONGEST_NAME // 2
    return name if len(name) <= LONGEST_NAME else f"{name[: half - 1]}…{name[-half:]}"


def promise(rate_bps: float | None) -> str:
    """Return what was promised, as it stands beside a name."""
    return "no guarantee" if rate_bps is None else f"guaranteed {format_bps(rate_bps)}"


def arrowed(name: str) -> str:
    """Return a name of a transfer as figures write it."""
    return name.replace("->", "→")


def _write(axes: Axes, x: float, y: float, text: str, size: float, anchor: str, colour: str = INK) -> None:
    axes.text(
        x,
        y,
        text,
        transform=axes.transAxes,
        fontsize=size,
        color=colour,
        verticalalignment=anchor,
        parse_math=False,
    )
