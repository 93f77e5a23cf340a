"""``matrix.html``: one page that compares the cells of a matrix, complete in itself."""

from __future__ import annotations

from pathlib import Path

from bench.analysis.summary import Summary
from bench.presentation import report
from bench.recording.directory import Recording
from bench.studies.matrix.index import HEADINGS, Matrix
from testbed.scenario.units import unit_for


def render(directory: Path, index: Matrix, summaries: dict[tuple[str, str], Summary], svg: bytes) -> str:
    """Return the page; ``svg`` is the figure as ``matrix_figure.render`` gives it."""
    rates = [flow.guarantee_bps for summary in summaries.values() for flow in summary.flows]
    return (
        report.templates()
        .get_template("matrix.html.j2")
        .render(
            run_id=directory.name.removesuffix(".unfinished"),
            index=index,
            summaries=summaries,
            headings=HEADINGS,
            symbols=report.SYMBOLS,
            unit=unit_for(rates),
            figure=report.inline(svg),
            pages={
                cell.recording: f"{cell.recording}/{Recording(directory / cell.recording).report_file.name}"
                for cell in index.cells
                if cell.recording is not None
            },
        )
    )
