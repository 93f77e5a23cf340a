"""``figures/places``: a small panel for each case, all on one scale, so that the eye compares."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench.analysis import samples
from bench.presentation.figures import style
from bench.presentation.figures.series import series
from bench.presentation.figures.style import COLOURS, bands
from bench.recording.directory import Recording
from bench.studies.places.index import Places, Row
from testbed.scenario.units import Unit, format_bps, unit_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 4
# Inches.
PANEL_WIDTH, PANEL_HEIGHT, GAP = 1.7, 1.15, 0.12
LEFT, RIGHT, TOP, BOTTOM, ROW_GAP = 0.55, 0.1, 0.5, 0.45, 0.4


def render(directory: Path, study: Places) -> dict[str, bytes]:
    """Return the figure by format."""
    return style.files(lambda: _draw(directory, study))


def _draw(directory: Path, study: Places) -> Figure:
    from matplotlib.figure import Figure

    count = -(-len(study.rows) // COLUMNS)
    width = LEFT + COLUMNS * PANEL_WIDTH + (COLUMNS - 1) * GAP + RIGHT
    height = TOP + count * PANEL_HEIGHT + (count - 1) * ROW_GAP + BOTTOM
    figure = Figure(figsize=(width, height))
    means = [rate for row in study.rows for got in row.rates_bps.values() for rate in got.values()]
    unit, peak = unit_for(means), max(means, default=1.0)
    for index, row in enumerate(study.rows):
        line, column = divmod(index, COLUMNS)
        left = LEFT + column * (PANEL_WIDTH + GAP)
        bottom = height - TOP - (line + 1) * PANEL_HEIGHT - line * ROW_GAP
        axes = figure.add_axes((left / width, bottom / height, PANEL_WIDTH / width, PANEL_HEIGHT / height))
        axes.set_title(f"{row.place}: {row.classes}", fontsize=7, loc="left", pad=3)
        axes.set_ylim(0, peak / unit.bits_per_second * 1.12)
        axes.grid(axis="y", color="#DDDDDD", linewidth=0.5)
        axes.set_axisbelow(True)
        _panel(axes, directory, row, unit)
        axes.tick_params(labelleft=column == 0)
        if column == 0:
            axes.set_ylabel(unit.name)
        if index + COLUMNS >= len(study.rows):
            axes.set_xlabel("time in s")
    _key(figure, study)
    return figure


def _panel(axes: Axes, directory: Path, row: Row, unit: Unit) -> None:
    if row.recording is None:
        axes.set_xticks([])
        axes.text(0.5, 0.5, "could not be run", transform=axes.transAxes, ha="center", fontsize=7)
        return
    recording = Recording(directory / row.recording)
    scenario = recording.scenario()
    axes.set_xlim(0, scenario.duration)
    bands(axes, scenario)
    lines = series(samples.table(recording.samples_file), scenario)
    for number, (pod, expected) in enumerate(row.expected_bps.items()):
        axes.axhline(expected / unit.bits_per_second, color=COLOURS[number], linestyle=":", linewidth=0.7)
        for name, dashes in ((f"{pod} alone", "-"), (pod, "-"), (f"to {pod}", "--")):
            if name in lines:
                rate = lines[name].median / unit.bits_per_second
                axes.plot(lines[name].seconds, rate, dashes, color=COLOURS[number], linewidth=1.0)


def _key(figure: Figure, study: Places) -> None:
    """Name the lines."""
    expected = next((row.expected_bps for row in study.rows if row.expected_bps), {})
    entries: style.Entries = {
        f"{pod} sends (promised {format_bps(rate)})": style.line(color=COLOURS[number])
        for number, (pod, rate) in enumerate(expected.items())
    }
    entries["pod receives"] = style.line(linestyle="--")
    entries["promised goodput"] = style.line(linestyle=":")
    entries["containers want the link too"] = style.shade()
    style.small_key(figure, entries, columns=6)
