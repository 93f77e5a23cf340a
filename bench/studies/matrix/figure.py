"""``figures/matrix``: a small panel for each case, all of a row on one scale, so that the eye compares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.analysis.excuses import Moments, together
from bench.analysis.phases import planned
from bench.analysis.summary import FlowSummary, Summary
from bench.presentation.figures import style
from bench.presentation.figures.head import EDGE, Key, extent
from bench.presentation.figures.labels import shortened
from bench.presentation.figures.series import ceiling, cut
from bench.presentation.figures.sheet import SMALL, Sheet
from bench.presentation.figures.style import INK, looks
from bench.recording.directory import Recording
from bench.studies.grid import Case, Grid, frame, headings, read_case, stage
from bench.studies.matrix.index import HEADINGS, Matrix
from testbed.scenario import Scenario
from testbed.scenario.units import Unit, format_bps, unit_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Units.
HEIGHT, TITLES, BELOW, BOTTOM, BETWEEN, LINE = 1.35, 0.36, 0.28, 0.5, 0.14, 0.2


@dataclass(frozen=True)
class Run(Case):
    """What is drawn of one case."""

    summary: Summary

    @property
    def guaranteed(self) -> list[FlowSummary]:
        """The flows that are drawn."""
        return [flow for flow in self.summary.flows if flow.role == "guaranteed"]

    @property
    def repeated(self) -> bool:
        """Whether means have intervals."""
        return len(self.record.repetitions) > 1


def render(
    directory: Path, index: Matrix, summaries: dict[tuple[str, str], Summary], sheet: Sheet
) -> dict[str, bytes]:
    """Return the figure by format."""
    runs = read(directory, index, summaries)
    return style.files(lambda: draw(index, runs, sheet), sheet)


def read(
    directory: Path, index: Matrix, summaries: Mapping[tuple[str, str], Summary]
) -> dict[tuple[str, str], Run]:
    """Return what is drawn of each case that was run."""
    return {
        case.key: Run(**vars(read_case(Recording(directory / case.recording))), summary=summary)
        for case in index.rows
        if case.recording and (summary := summaries.get(case.key))
    }


def draw(index: Matrix, runs: Mapping[tuple[str, str], Run], sheet: Sheet) -> Figure:
    """Return the figure; ``style.files`` makes files of it."""
    columns = index.enforcements
    grid = Grid(sheet, len(columns), HEIGHT, TITLES)
    found = together(run.moments for run in runs.values())
    key = Key(sheet, _entries(runs.values(), found), EDGE)
    keys = {
        scenario: Key(sheet, _flows([run for (of, _), run in runs.items() if of == scenario]), heading_end)
        for scenario in index.scenarios
        for heading_end in [EDGE + extent(scenario, SMALL, bold=True) + BETWEEN]
    }
    deep = grid.rows(len(columns)) * (TITLES + HEIGHT + BELOW) - BELOW + BOTTOM
    total = EDGE + key.height + sum(BETWEEN + max(one.height, LINE) + deep for one in keys.values())
    figure = sheet.figure(total)
    key.draw(figure, EDGE)
    top = EDGE + key.height
    for scenario, own in keys.items():
        top += BETWEEN
        figure.text(
            EDGE / sheet.room, 1 - top / total, scenario, va="top", weight="bold",
            fontsize=sheet.points(SMALL), parse_math=False,
        )  # fmt: skip
        own.draw(figure, top)
        top += max(own.height, LINE)
        panels = grid.panels(figure, len(columns), top, BELOW)
        _row(index, runs, scenario, grid, panels)
        top += deep
    return figure


def _row(
    index: Matrix,
    runs: Mapping[tuple[str, str], Run],
    scenario: str,
    grid: Grid,
    panels: Sequence[Axes],
) -> None:
    """Draw the cases of one scenario, all on one scale."""
    known = [run for (of, _), run in runs.items() if of == scenario]
    lines = [run.lines[flow.name] for run in known for flow in run.guaranteed if flow.name in run.lines]
    promised = [flow.guarantee_bps or 0.0 for run in known for flow in run.guaranteed]
    most = ceiling(lines, promised)
    unit = unit_for([most])
    for number, (enforcement, axes) in enumerate(zip(index.enforcements, panels, strict=True)):
        run = runs.get((scenario, enforcement))
        verdict = "not run" if run is None else run.summary.verdict
        headings(axes, HEADINGS.get(enforcement, enforcement), verdict, grid.sheet)
        axes.locator_params(axis="y", nbins=5, steps=[1, 2, 2.5, 5, 10])
        why = "does not apply" if index.case(scenario, enforcement).reason else "not run"
        frame(axes, number, len(index.enforcements), grid, unit, most)
        stage(axes, run, why, grid.sheet)
        if run:
            _lines(axes, run, unit, most, grid.sheet)


def _lines(axes: Axes, run: Run, unit: Unit, most: float, sheet: Sheet) -> None:
    scenario, looked, scale = run.scenario, looks(run.scenario), unit.bits_per_second
    for number, flow in enumerate(run.guaranteed):
        expected = (flow.expected_goodput_bps or 0.0) / scale
        axes.axhline(expected, color=INK, linestyle="--", linewidth=sheet.points(0.6), zorder=2)
        if line := run.lines.get(flow.name):
            rates, _ = cut(line.median, most)
            colour = looked[flow.name].colour
            axes.plot(line.seconds, rates / scale, color=colour, linewidth=sheet.points(1), zorder=3)
        if run.repeated:
            _intervals(axes, flow, scenario, unit, most, number, sheet)


def _intervals(
    axes: Axes, flow: FlowSummary, scenario: Scenario, unit: Unit, most: float, number: int, sheet: Sheet
) -> None:
    """Mark the mean of each phase and its 95 % interval in the middle of the phase, beside other flows'."""
    for name, phase in flow.phases.items():
        if phase.intervals:
            low, high = phase.intervals.mean_bps.low, phase.intervals.mean_bps.high
            mean, lowest, highest = (
                min(value, most) / unit.bits_per_second for value in (phase.mean_bps, low, high)
            )
            begun, end = stretch(scenario, name)
            axes.errorbar(
                [begun + (end - begun) * (number + 1) / (len(scenario.flows) + 1)],
                [mean],
                yerr=[[max(mean - lowest, 0)], [max(highest - mean, 0)]],
                fmt="o",
                color=INK,
                markersize=sheet.points(2.2),
                elinewidth=sheet.points(0.8),
                capsize=sheet.points(1.5),
                zorder=6,
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


def _flows(runs: Sequence[Run]) -> style.Entries:
    """Name the flows of a scenario, each with its rate and in its colour."""
    names = {flow.name: (flow, run) for run in reversed(runs) for flow in run.guaranteed}
    return [
        (
            f"{shortened(name)}: {format_bps(flow.guarantee_bps or 0.0)}",
            style.line(color=looks(run.scenario)[name].colour),
        )
        for name, (flow, run) in names.items()
    ]


def _entries(runs: Iterable[Run], found: Moments) -> style.Entries:
    """Name what is the same in all panels."""
    known = list(runs)
    entries: style.Entries = [("expected", style.line(linestyle="--", linewidth=0.6))]
    if any(run.scenario.disturbances for run in known):
        entries += [("disturbed", style.shade())]
    if any(run.repeated for run in known):
        entries += [("mean, 95 %", style.line(linestyle="none", marker="o", markersize=2.2))]
    return entries + style.of_moments(found)
