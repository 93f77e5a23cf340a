"""Names beside the lines they belong to, at the right of a panel and never on top of each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME_SIZE, REMARK_SIZE = 7.5, 6.5  # points
MUTED = "#595959"
LONGEST_NAME = 22
# Up to so many labels have room for a remark on a second line.
MOST_WITH_REMARKS = 8


@dataclass(frozen=True)
class Label:
    """One line's name."""

    name: str
    remark: str
    level: float  # where the line is, in inches above the panel's bottom
    colour: str
    marker: str


def gap(count: int) -> float:
    """Return the inches from one label to the next if there are so many."""
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


def draw(axes: Axes, labels: Sequence[Label], width: float, height: float) -> None:
    """Draw the labels of a panel of ``width`` by ``height`` inches, each with a leader in its line's look."""
    places = spread([label.level for label in labels], gap(len(labels)), height)
    for label, place in zip(labels, places, strict=True):
        level, beside = label.level / height, place / height
        axes.plot(
            [1 + inches / width for inches in (0.04, 0.14, 0.2, 0.27)],
            [level, level, beside, beside],
            color=label.colour,
            marker=label.marker,
            markersize=3.5,
            markeredgewidth=0,
            markevery=[3],
            linewidth=0.8,
            transform=axes.transAxes,
            clip_on=False,
        )
        remarks = len(labels) <= MOST_WITH_REMARKS
        _write(
            axes,
            1 + 0.34 / width,
            beside,
            shortened(label.name),
            NAME_SIZE,
            "bottom" if remarks else "center",
        )
        if remarks:
            _write(axes, 1 + 0.34 / width, beside, label.remark, REMARK_SIZE, "top", MUTED)


def shortened(name: str) -> str:
    """Return a name that fits; long ones differ at their beginning or end more often than in the middle."""
    name = name.replace("->", "→")
    half = LONGEST_NAME // 2
    return name if len(name) <= LONGEST_NAME else f"{name[: half - 1]}…{name[-half:]}"


def _write(
    axes: Axes, x: float, y: float, text: str, size: float, anchor: str, colour: str = "black"
) -> None:
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
