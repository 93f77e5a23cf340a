"""``figures/places``: a small panel for each case, all on one scale, so that the eye compares."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.analysis.excuses import Moments, together
from bench.presentation.figures import style
from bench.presentation.figures.head import EDGE, Key
from bench.presentation.figures.series import ceiling, cut
from bench.presentation.figures.sheet import Sheet
from bench.presentation.figures.style import look
from bench.recording.directory import Recording
from bench.studies.grid import Case, Grid, frame, headings, read_case, stage
from bench.studies.places.index import Places, Row
from testbed.scenario.units import Unit, format_bps, unit_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 4
HEIGHT, TITLES, BELOW, BOTTOM = 1.05, 0.34, 0.26, 0.45  # units


def render(directory: Path, study: Places, sheet: Sheet) -> dict[str, bytes]:
    """Return the figure by format."""
    runs = [read_case(Recording(directory / row.recording)) if row.recording else None for row in study.rows]
    return style.files(lambda: _draw(study, runs, sheet), sheet)


def _draw(study: Places, runs: Sequence[Case | None], sheet: Sheet) -> Figure:
    grid, count = Grid(sheet, COLUMNS, HEIGHT, TITLES), len(study.rows)
    found = together(run.moments for run in runs if run)
    key = Key(sheet, _entries(study, found), EDGE)
    deep = grid.rows(count) * (TITLES + HEIGHT + BELOW) - BELOW + BOTTOM
    figure = sheet.figure(EDGE + key.height + deep)
    drawn = [run.lines[name] for run in runs if run for name in _drawn(study, run)]
    most = ceiling(drawn, [])
    unit = unit_for([most])
    panels = grid.panels(figure, count, EDGE + key.height, BELOW)
    for number, (row, run, axes) in enumerate(zip(study.rows, runs, panels, strict=True)):
        headings(axes, f"{row.place}: {row.classes}", row.verdict or "", sheet)
        frame(axes, number, count, grid, unit, most)
        stage(axes, run, "could not be run", sheet)
        if run:
            _lines(axes, row, run, unit, most, sheet)
    key.draw(figure, EDGE)
    return figure


def _drawn(study: Places, run: Case) -> list[str]:
    pods = {pod for row in study.rows for pod in row.expected_bps}
    return [name for pod in sorted(pods) for name in _names(pod) if name in run.lines]


def _names(pod: str) -> dict[str, str]:
    """Return what is drawn of a pod, each with its dashes."""
    return {f"{pod} alone": "-", pod: "-", f"to {pod}": "--"}


def _lines(axes: Axes, row: Row, run: Case, unit: Unit, most: float, sheet: Sheet) -> None:
    for number, (pod, expected) in enumerate(row.expected_bps.items()):
        colour = look(number).colour
        axes.axhline(
            expected / unit.bits_per_second, color=colour, linestyle=":", linewidth=sheet.points(0.7)
        )
        for name, dashes in _names(pod).items():
            if line := run.lines.get(name):
                rates, _ = cut(line.median, most)
                axes.plot(
                    line.seconds,
                    rates / unit.bits_per_second,
                    dashes,
                    color=colour,
                    linewidth=sheet.points(1),
                )


def _entries(study: Places, found: Moments) -> style.Entries:
    """Name the lines."""
    expected = next((row.expected_bps for row in study.rows if row.expected_bps), {})
    return [
        *(
            (f"{pod} sends (promised {format_bps(rate)})", style.line(color=look(number).colour))
            for number, (pod, rate) in enumerate(expected.items())
        ),
        ("pod receives", style.line(linestyle="--")),
        ("promised goodput", style.line(linestyle=":")),
        ("containers want the link too", style.shade()),
        *style.of_moments(found),
    ]
