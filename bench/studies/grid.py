"""Small panels in rows and columns, each with what it shows and how that was judged above it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.presentation.figures.sheet import SMALL, Sheet
from bench.presentation.figures.style import INK, VERDICTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEFT, RIGHT, GAP = 0.62, 0.12, 0.12  # units
LEAST = 1.2  # width of a panel


@dataclass(frozen=True)
class Grid:
    """Where panels are, in units."""

    sheet: Sheet
    most: int  # panels beside each other, where there is room
    height: float  # of a panel
    above: float  # of what stands above each: its title
    gap: float = GAP  # between panels
    least: float = LEAST  # width of a panel

    @property
    def columns(self) -> int:
        """How many panels are beside each other."""
        room = self.sheet.room - LEFT - RIGHT + self.gap
        return max(1, min(self.most, int(room / (self.least + self.gap))))

    @property
    def width(self) -> float:
        """How wide each is."""
        room = self.sheet.room - LEFT - RIGHT
        return (room - (self.columns - 1) * self.gap) / self.columns

    def rows(self, count: int) -> int:
        """Return in how many rows so many panels are."""
        return -(-count // self.columns)

    def panels(self, figure: Figure, count: int, top: float, below: float) -> Sequence[Axes]:
        """Return so many panels, the first row's titles ``top`` units from the figure's upper edge.

        ``below`` is what each row has for its own axis.
        """
        total = figure.get_figheight() / self.sheet.scale
        found = []
        for number in range(count):
            row, column = divmod(number, self.columns)
            bottom = total - top - (row + 1) * (self.above + self.height) - row * below
            left = LEFT + column * (self.width + self.gap)
            found.append(
                figure.add_axes(
                    (
                        left / self.sheet.room,
                        bottom / total,
                        self.width / self.sheet.room,
                        self.height / total,
                    )
                )
            )
        return found


def headings(axes: Axes, name: str, verdict: str, sheet: Sheet) -> None:
    """Write above a small panel what it shows, and below that how it was judged."""
    look: Any = {
        "xycoords": "axes fraction",
        "textcoords": "offset points",
        "fontsize": sheet.points(SMALL),
        "parse_math": False,
    }
    low, line = sheet.points(2), sheet.points(SMALL * 1.4)
    axes.annotate(name, (0, 1), xytext=(0, low + line), **look)
    axes.annotate(verdict, (0, 1), xytext=(0, low), color=VERDICTS.get(verdict, INK), weight="bold", **look)
