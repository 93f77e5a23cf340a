"""``figures/places``: a small panel for each case, all on one scale, so that the eye compares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.analysis import samples
from bench.analysis.excuses import Moments, together
from bench.presentation.figures import style
from bench.presentation.figures.head import EDGE, Key
from bench.presentation.figures.series import Series, ceiling, cut, series
from bench.presentation.figures.sheet import SMALL, Sheet
from bench.presentation.figures.style import bands, look
from bench.recording.directory import Recording
from bench.studies.grid import LEFT, Grid, headings
from bench.studies.places.index import Places, Row
from testbed.scenario import Scenario
from testbed.scenario.units import Unit, format_bps, unit_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 4
HEIGHT, TITLES, BELOW, BOTTOM = 1.05, 0.34, 0.26, 0.45  # units


@dataclass(frozen=True)
class _Run:
    """What is drawn of one case."""

    scenario: Scenario
    lines: Mapping[str, Series]
    moments: Moments


def render(directory: Path, study: Places, sheet: Sheet) -> dict[str, bytes]:
    """Return the figure by format."""
    runs = [None if row.recording is None else _read(directory / row.recording) for row in study.rows]
    return style.files(lambda: _draw(study, runs, sheet), sheet)


def _read(directory: Path) -> _Run:
    recording = Recording(directory)
    scenario = recording.scenario()
    lines = series(samples.table(recording.samples_file), scenario)
    return _Run(scenario, lines, style.moments(recording.run_record()))


def _draw(study: Places, runs: Sequence[_Run | None], sheet: Sheet) -> Figure:
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
        axes.set_ylim(0, (most or unit.bits_per_second) / unit.bits_per_second * 1.08)
        _panel(axes, row, run, unit, most, sheet)
        axes.tick_params(labelleft=number % grid.columns == 0)
        if number % grid.columns == 0:
            axes.set_ylabel(unit.name)
            axes.yaxis.set_label_coords(-0.72 * LEFT / grid.width, 0.5)
        if number + grid.columns >= count:
            axes.set_xlabel("time in s")
    key.draw(figure, EDGE)
    return figure


def _drawn(study: Places, run: _Run) -> list[str]:
    pods = {pod for row in study.rows for pod in row.expected_bps}
    return [name for pod in sorted(pods) for name in _names(pod) if name in run.lines]


def _names(pod: str) -> dict[str, str]:
    """Return what is drawn of a pod, each with its dashes."""
    return {f"{pod} alone": "-", pod: "-", f"to {pod}": "--"}


def _panel(axes: Axes, row: Row, run: _Run | None, unit: Unit, most: float, sheet: Sheet) -> None:
    if run is None:
        axes.set_xticks([])
        axes.text(
            0.5, 0.5, "could not be run", transform=axes.transAxes, ha="center", fontsize=sheet.points(SMALL)
        )
        return
    axes.set_xlim(0, run.scenario.duration)
    axes.locator_params(axis="x", nbins=4, steps=[1, 2, 2.5, 5, 10], prune="upper")
    axes.xaxis.set_major_formatter("{x:g}")
    bands(axes, run.scenario)
    style.mark(axes, run.moments)
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
