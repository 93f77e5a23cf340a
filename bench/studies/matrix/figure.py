"""``figures/matrix``: a small panel for each case, all of a row on one scale, so that the eye compares."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.analysis import samples
from bench.analysis.phases import planned
from bench.analysis.summary import FlowSummary, Summary
from bench.presentation.figures import style
from bench.presentation.figures.series import series
from bench.presentation.figures.style import COLOURS, bands
from bench.recording.directory import Recording
from bench.studies.matrix.index import HEADINGS, Matrix, MatrixCase
from testbed.scenario import Scenario
from testbed.scenario.units import Unit, format_bps, unit_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Of a mean: a dot, and its interval.
MARK: Any = {"fmt": "o", "color": "black", "markersize": 2.2, "elinewidth": 0.8, "capsize": 1.5, "zorder": 5}
# Inches.
PANEL_WIDTH, PANEL_HEIGHT, GAP = 1.9, 1.6, 0.12
LEFT, RIGHT, TOP, BOTTOM, ROW_GAP = 0.6, 0.1, 0.55, 0.45, 0.4


def render(directory: Path, index: Matrix, summaries: dict[tuple[str, str], Summary]) -> dict[str, bytes]:
    """Return the figure by format."""
    return style.files(lambda: _draw(directory, index, summaries))


def _draw(directory: Path, index: Matrix, summaries: dict[tuple[str, str], Summary]) -> Figure:
    from matplotlib.figure import Figure

    rows, columns = index.scenarios, index.enforcements
    width = LEFT + len(columns) * PANEL_WIDTH + (len(columns) - 1) * GAP + RIGHT
    height = TOP + len(rows) * PANEL_HEIGHT + (len(rows) - 1) * ROW_GAP + BOTTOM
    figure = Figure(figsize=(width, height))
    for row, scenario in enumerate(rows):
        known = [summary for (name, _), summary in summaries.items() if name == scenario]
        unit, peak = _scale(known)
        for column, enforcement in enumerate(columns):
            left = LEFT + column * (PANEL_WIDTH + GAP)
            bottom = height - TOP - (row + 1) * PANEL_HEIGHT - row * ROW_GAP
            axes = figure.add_axes(
                (left / width, bottom / height, PANEL_WIDTH / width, PANEL_HEIGHT / height)
            )
            summary = summaries.get((scenario, enforcement))
            _heading(axes, enforcement, summary)
            _panel(axes, directory, index.case(scenario, enforcement), summary, unit, peak)
            if column == 0:
                axes.set_ylabel(f"{scenario}\n{unit.name}")
            else:
                axes.tick_params(labelleft=False)
            if row == len(rows) - 1:
                axes.set_xlabel("time in s")
            else:
                axes.tick_params(labelbottom=False)
    _key(figure, list(summaries.values()))
    return figure


def _scale(summaries: list[Summary]) -> tuple[Unit, float]:
    """Return the unit of a row and the highest guarantee or mean of a guaranteed flow in it."""
    rates = [0.0]
    for summary in summaries:
        for flow in _guaranteed(summary):
            rates += [flow.guarantee_bps or 0.0, *(phase.mean_bps for phase in flow.phases.values())]
    return unit_for(rates), max(rates)


def _guaranteed(summary: Summary) -> list[FlowSummary]:
    return [flow for flow in summary.flows if flow.role == "guaranteed"]


def _heading(axes: Axes, enforcement: str, summary: Summary | None) -> None:
    verdict = "not run" if summary is None else summary.verdict
    heading = HEADINGS.get(enforcement, enforcement)
    axes.set_title(f"{heading}\n{verdict}", fontsize=7.5, loc="left", pad=3)


def _panel(
    axes: Axes, directory: Path, case: MatrixCase, summary: Summary | None, unit: Unit, peak: float
) -> None:
    axes.set_ylim(0, (peak or unit.bits_per_second) / unit.bits_per_second * 1.12)
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.5)
    axes.set_axisbelow(True)
    if summary is None or case.recording is None:
        axes.set_xticks([])
        words = "does not apply" if case.reason else "not run"
        axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", fontsize=7)
        return
    recording = Recording(directory / case.recording)
    scenario = recording.scenario()
    axes.set_xlim(0, scenario.duration)
    # Few, and none at the right end, where the next panel's first is.
    axes.locator_params(axis="x", nbins=4, steps=[1, 2, 2.5, 5, 10], prune="upper")
    axes.xaxis.set_major_formatter("{x:g}")
    bands(axes, scenario)
    lines = series(samples.table(recording.samples_file), scenario)
    for number, flow in enumerate(_guaranteed(summary)):
        expected = (flow.expected_goodput_bps or 0.0) / unit.bits_per_second
        axes.axhline(expected, color="black", linestyle="--", linewidth=0.6, zorder=2)
        if flow.name in lines:
            line = lines[flow.name]
            colour = COLOURS[number % len(COLOURS)]
            axes.plot(line.seconds, line.median / unit.bits_per_second, color=colour, linewidth=1.0, zorder=3)
        if len(recording.run_record().repetitions) > 1:
            _intervals(axes, flow, scenario, unit, number)


def _intervals(axes: Axes, flow: FlowSummary, scenario: Scenario, unit: Unit, number: int) -> None:
    """Mark the mean of each phase and its 95 % interval in the middle of the phase, beside other flows'."""
    for name, phase in flow.phases.items():
        if phase.intervals:
            low, high = phase.intervals.mean_bps.low, phase.intervals.mean_bps.high
            mean, lowest, highest = (value / unit.bits_per_second for value in (phase.mean_bps, low, high))
            begun, end = stretch(scenario, name)
            axes.errorbar(
                [begun + (end - begun) * (number + 1) / (len(scenario.flows) + 1)],
                [mean],
                yerr=[[max(mean - lowest, 0)], [max(highest - mean, 0)]],
                **MARK,
            )


def stretch(scenario: Scenario, phase: str) -> tuple[float, float]:
    """Return the first stretch of time that belongs to a phase, as planned."""
    disturbed = planned(scenario)
    for stretch in disturbed:
        if stretch.phase == phase:
            return stretch.start, stretch.end
    begun = scenario.measurement.warm_up
    if disturbed and disturbed[0].start <= begun:
        return disturbed[0].end, scenario.duration
    return begun, disturbed[0].start if disturbed else scenario.duration


def _key(figure: Figure, summaries: list[Summary]) -> None:
    """Name the flows and the dashes."""
    names: dict[str, str] = {}
    for summary in summaries:
        for flow in _guaranteed(summary):
            names.setdefault(flow.name, f"{flow.name}: {format_bps(flow.guarantee_bps or 0.0)}")
    entries: style.Entries = {
        name: style.line(color=COLOURS[number % len(COLOURS)]) for number, name in enumerate(names.values())
    }
    entries["expected"] = style.line(linestyle="--", linewidth=0.6)
    entries["disturbance"] = style.shade()
    if any(
        len(phase.repetitions) > 1 for s in summaries for f in _guaranteed(s) for phase in f.phases.values()
    ):
        entries["mean, 95 %"] = style.line(linestyle="none", marker="o", markersize=2.2)
    style.small_key(figure, entries, columns=5)
