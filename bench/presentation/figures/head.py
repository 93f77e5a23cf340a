"""What stands above the panels of a figure, and never on them: the verdict, if it is not *held*, and a key.

Both are broken into as many lines as the sheet's width asks for, and say how much height that takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from bench.presentation import wording
from bench.presentation.figures.sheet import SMALL, TEXT, Sheet, Subject
from bench.presentation.figures.style import INK, VERDICTS
from testbed.scenario.units import format_factor

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bench.presentation.figures.style import Entries, Entry

T = TypeVar("T")

# Units.
EDGE, LINE, ROW, BELOW = 0.06, 0.18, 0.16, 0.1  # ``BELOW``: from what is lowest to the panels
HANDLE, PAD, BETWEEN = (
    0.26,
    0.06,
    0.16,
)  # of an entry of a key: what is drawn, its gap to the text, and the next


def extent(text: str, points: float, bold: bool = False) -> float:
    """Return how wide a text is, in units."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    look = FontProperties(family="DejaVu Sans", size=points, weight="bold" if bold else "normal")
    width, _, _ = text_to_path.get_text_width_height_descent(text, look, ismath=False)
    return float(width) / 72


def broken(parts: Sequence[T], width: Callable[[T], float], between: float, room: float) -> Iterator[list[T]]:
    """Yield the parts in rows, as many in each as have room there; one alone may need more."""
    row: list[T] = []
    used = 0.0
    for part in parts:
        needed = width(part)
        if row and used + between + needed > room:
            yield row
            row, used = [], 0.0
        used += needed + (between if row else 0.0)
        row.append(part)
    if row:
        yield row


@dataclass(frozen=True)
class Key:
    """What lines mean, in rows."""

    sheet: Sheet
    entries: Entries
    left: float  # units
    rows: list[Entries] = field(init=False)

    def __post_init__(self) -> None:
        room = self.sheet.room - self.left - EDGE
        rows = broken(self.entries, self._width, BETWEEN, room)
        object.__setattr__(self, "rows", list(rows))

    @property
    def height(self) -> float:
        """How much height it takes, in units."""
        return ROW * len(self.rows)

    def draw(self, figure: Figure, top: float) -> None:
        """Draw it below ``top``, in units from the figure's upper edge; its lines grow with the text."""
        from matplotlib.lines import Line2D

        handle = HANDLE * 72 / SMALL  # in sizes of the text, as all of a legend
        for _, one in self.entries:
            one.set_linewidth(self.sheet.points(one.get_linewidth()))
            if isinstance(one, Line2D):
                one.set_markersize(self.sheet.points(one.get_markersize()))
        for number, row in enumerate(self.rows):
            figure.legend(
                [handle for _, handle in row],
                [text for text, _ in row],
                loc="upper left",
                bbox_to_anchor=_place(figure, self.sheet, self.left, top + number * ROW),
                ncols=len(row),
                frameon=False,
                borderaxespad=0,
                borderpad=0,
                fontsize=self.sheet.points(SMALL),
                handlelength=handle,
                handletextpad=PAD * 72 / SMALL,
                columnspacing=BETWEEN * 72 / SMALL,
            )
            for text in figure.legends[-1].get_texts():
                text.set_parse_math(False)

    def _width(self, entry: Entry) -> float:
        return HANDLE + PAD + extent(entry[0], SMALL)


@dataclass(frozen=True)
class Head:
    """The verdict and the key, above all panels."""

    sheet: Sheet
    verdict: str  # empty: there is none to be told
    colour: str
    key: Key

    @property
    def lines(self) -> list[str]:
        """The verdict, in lines."""
        room = self.sheet.room - self.key.left - EDGE
        words = self.verdict.split()
        space = extent(" ", TEXT, bold=True)
        rows = broken(words, lambda word: extent(word, TEXT, bold=True), space, room)
        return [" ".join(row) for row in rows]

    @property
    def height(self) -> float:
        """How much height it takes down to the panels, in units."""
        return EDGE + LINE * len(self.lines) + self.key.height + BELOW

    def draw(self, figure: Figure) -> None:
        """Draw it at the top of the figure."""
        for number, line in enumerate(self.lines):
            x, y = _place(figure, self.sheet, self.key.left, EDGE + number * LINE)
            figure.text(
                x, y, line, va="top", weight="bold", color=self.colour, fontsize=self.sheet.points(TEXT),
                parse_math=False,
            )  # fmt: skip
        self.key.draw(figure, EDGE + LINE * len(self.lines))


def above(subject: Subject, key: Key) -> Head:
    """Return what stands above a figure of one run: also at which scale it was, if not that of its file."""
    verdict = subject.summary.verdict
    scale = "" if subject.scale == 1 else f"at {format_factor(subject.scale)}"
    said = [text for text in (wording.briefly(subject.summary), scale) if text]
    return Head(key.sheet, "; ".join(said), INK if verdict == "held" else VERDICTS[verdict], key)


def _place(figure: Figure, sheet: Sheet, left: float, top: float) -> tuple[float, float]:
    return left / sheet.room, 1 - top * sheet.scale / figure.get_figheight()
