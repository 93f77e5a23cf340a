"""A matrix for the terminal."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from bench.analysis.summary import Summary
from bench.presentation.tables import STYLES
from bench.presentation.words import verbatim
from bench.studies.matrix.index import Matrix, MatrixCase


def compare(index: Matrix, summaries: dict[tuple[str, str], Summary], scenario: str) -> Table:
    """Return a table with a column for each enforcement: what each flow got, as a share of what it should."""
    table = Table(
        title=verbatim(f"{scenario}: observed mean in % of the expected goodput, quiet / disturbed"),
        title_justify="left", title_style="", box=None, pad_edge=False, padding=(0, 2, 0, 0),
    )  # fmt: skip
    table.add_column("flow", overflow="fold")
    for enforcement in index.enforcements:
        table.add_column(enforcement, justify="right", no_wrap=True)
    columns = [summaries.get((scenario, enforcement)) for enforcement in index.enforcements]
    names = dict.fromkeys(
        flow.name for summary in columns if summary for flow in summary.flows if flow.guarantee_bps
    )
    for name in names:
        table.add_row(verbatim(name), *(_attained(summary, name) for summary in columns))
    cases = [index.case(scenario, enforcement) for enforcement in index.enforcements]
    table.add_row("verdict", *(_verdict(case, summary) for case, summary in zip(cases, columns, strict=True)))
    return table


def _verdict(case: MatrixCase, summary: Summary | None) -> Text:
    if summary is None:
        return Text("does not apply" if case.reason else "not run")
    return Text(summary.verdict, STYLES[summary.verdict])


def _attained(summary: Summary | None, name: str) -> str:
    flow = next((flow for flow in summary.flows if flow.name == name), None) if summary else None
    if flow is None or not flow.expected_goodput_bps:
        return "-"
    phases = [flow.phases.get("quiet"), flow.phases.get("disturbed")]
    shares = [f"{phase.mean_bps / flow.expected_goodput_bps * 100:.0f}" if phase else "-" for phase in phases]
    return " / ".join(shares)
