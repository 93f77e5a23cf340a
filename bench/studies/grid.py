"""Small panels in rows and columns, one for each case: what it shows, and how that was judged, above it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.analysis import samples
from bench.analysis.excuses import Moments
from bench.presentation.figures.series import Series, series
from bench.presentation.figures.sheet import SMALL, Sheet
from bench.presentation.figures.style import INK, VERDICTS, bands, mark, moments
from bench.recording.directory import Recording
from bench.recording.records import RunRecord
from testbed.scenario import Scenario
from testbed.scenario.units import Unit

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


@dataclass(frozen=True)
class Case:
    """What is drawn of one case of a study."""

    scenario: Scenario
    record: RunRecord
    lines: Mapping[str, Series]  # by flow

    @property
    def moments(self) -> Moments:
        """The machine's bad ones."""
        return moments(self.record)


def read_case(recording: Recording) -> Case:
    """Return what is drawn of an analysed recording. Raises StoredError and ScenarioError."""
    scenario = recording.scenario()
    lines = series(samples.table(recording.samples_file), scenario)
    return Case(scenario, recording.run_record(), lines)


def frame(axes: Axes, number: int, count: int, grid: Grid, unit: Unit, most: float) -> None:
    """Give one of many small panels the scale and the axes' names that all of them share."""
    axes.set_ylim(0, (most or unit.bits_per_second) / unit.bits_per_second * 1.08)
    axes.tick_params(labelleft=number % grid.columns == 0)
    if number % grid.columns == 0:
        axes.set_ylabel(unit.name)
        axes.yaxis.set_label_coords(-0.72 * LEFT / grid.width, 0.5)
    if number + grid.columns >= count:
        axes.set_xlabel("time in s")


def stage(axes: Axes, run: Case | None, why: str, sheet: Sheet) -> None:
    """Draw what all lines of a small panel stand before: its time; or why there is none."""
    if run is None:
        axes.set_xticks([])
        axes.text(0.5, 0.5, why, transform=axes.transAxes, ha="center", fontsize=sheet.points(SMALL))
        return
    axes.set_xlim(0, run.scenario.duration)
    # Few, and none at the right end, where the next panel's first is.
    axes.locator_params(axis="x", nbins=4, steps=[1, 2, 2.5, 5, 10], prune="upper")
    axes.xaxis.set_major_formatter("{x:g}")
    bands(axes, run.scenario)
    mark(axes, run.moments)
