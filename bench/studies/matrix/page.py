"""``matrix.html``: one page that compares the cases of a matrix, complete in itself."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bench.analysis.phases import QUIET
from bench.analysis.summary import Summary
from bench.presentation import again, report, tables
from bench.recording.directory import UNFINISHED, Recording
from bench.studies import study
from bench.studies.matrix import table
from bench.studies.matrix.index import HEADINGS, Matrix
from testbed.scenario.units import unit_for

TITLE = "A panel for each scenario and enforcement: what each guaranteed flow got against time"
CAPTION = (
    "Payload that arrived, by the receivers' records; what is dashed is expected. "
    "Each case's own page has every sample."
)


def render(directory: Path, index: Matrix, summaries: dict[tuple[str, str], Summary], png: bytes) -> str:
    """Return the page; ``png`` is the figure."""
    name, asked = directory.name.removesuffix(UNFINISHED), study.request(directory)
    rates = [flow.guarantee_bps for summary in summaries.values() for flow in summary.flows]
    return (
        report.templates()
        .get_template("matrix.html.j2")
        .render(
            run_id=name,
            figures_again=again.figures(name, asked),
            asked=again.study(asked, "matrix") if asked else None,
            index=index,
            summaries=summaries,
            headings=HEADINGS,
            phases=_phases(summaries),
            intervals_of=_intervals_of(summaries.values()),
            symbols=report.SYMBOLS,
            unit=unit_for(rates),
            figure={"png": report.inline(png), "title": TITLE, "caption": CAPTION, "charted": False},
            requests={
                scenario: list(table.latencies(index, summaries, scenario)) for scenario in index.scenarios
            },
            briefly=table.briefly,
            pages={
                case.recording: f"{case.recording}/{Recording(directory / case.recording).report_file.name}"
                for case in index.cells
                if case.recording is not None
            },
        )
    )


def _intervals_of(summaries: Iterable[Summary]) -> str:
    """Say what intervals are made of."""
    return tables.over(
        phase.intervals.mean_bps.unit
        for summary in summaries
        for flow in summary.flows
        for phase in flow.phases.values()
        if phase.intervals
    )


def _phases(summaries: dict[tuple[str, str], Summary]) -> dict[tuple[str, str], list[str]]:
    """Return the phases that a flow has under any enforcement, by scenario and flow."""
    found: dict[tuple[str, str], list[str]] = {}
    for (scenario, _), summary in summaries.items():
        for flow in summary.flows:
            phases = found.setdefault((scenario, flow.name), [])
            phases += [phase for phase in flow.phases if phase not in phases]
            phases.sort(key=lambda phase: phase != QUIET)
    return found
