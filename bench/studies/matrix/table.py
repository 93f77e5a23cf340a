"""A matrix for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from bench.analysis.phases import QUIET
from bench.analysis.summary import FlowSummary, Summary
from bench.presentation import tables
from bench.presentation.tables import STYLES
from bench.presentation.words import verbatim
from bench.studies.matrix.index import Matrix, MatrixCase


def compare(index: Matrix, summaries: dict[tuple[str, str], Summary], scenario: str) -> Table:
    """Return a table with a column for each enforcement: what each flow got, as a share of what it should.

    Of several repetitions each phase has a row of its own, and each mean half of its 95 % interval.
    """
    columns = [summaries.get((scenario, enforcement)) for enforcement in index.enforcements]
    cases = [index.case(scenario, enforcement) for enforcement in index.enforcements]
    several = index.repetitions > 1
    what = f"± 95 % {_over(columns)}" if several else "quiet / disturbed"
    table = Table(
        title=verbatim(f"{scenario}: observed mean in % of the expected goodput, {what}"),
        title_justify="left",
        title_style="",
        box=None,
        pad_edge=False,
        padding=(0, 1 if several else 2, 0, 0),
    )
    table.add_column("flow", overflow="fold")
    if several:
        table.add_column("phase", overflow="fold")
    for enforcement in index.enforcements:
        table.add_column(enforcement, justify="right", no_wrap=True)
    for name in dict.fromkeys(flow.name for summary in columns for flow in _promised(summary)):
        if not several:
            table.add_row(verbatim(name), *(_attained(summary, name) for summary in columns))
            continue
        flows = [_flow(summary, name) for summary in columns]
        for number, phase in enumerate(
            dict.fromkeys(phase for flow in flows if flow for phase in flow.phases)
        ):
            first = verbatim(name if number == 0 else "")
            table.add_row(first, verbatim(phase), *(_known(flow, phase) for flow in flows))
    verdicts = (_verdict(case, summary) for case, summary in zip(cases, columns, strict=True))
    table.add_row("verdict", *([""] if several else []), *verdicts)
    return table


def _verdict(case: MatrixCase, summary: Summary | None) -> Text:
    if summary is None:
        return Text("does not apply" if case.reason else "not run")
    return Text(summary.verdict, STYLES[summary.verdict])


def _promised(summary: Summary | None) -> Sequence[FlowSummary]:
    return [flow for flow in summary.flows if flow.guarantee_bps] if summary else []


def _flow(summary: Summary | None, name: str) -> FlowSummary | None:
    return next((flow for flow in summary.flows if flow.name == name), None) if summary else None


def _attained(summary: Summary | None, name: str) -> str:
    flow = _flow(summary, name)
    if flow is None or not flow.expected_goodput_bps:
        return "-"
    quiet = [phase.mean_bps for name, phase in flow.phases.items() if name == QUIET]
    # Of several sets of disturbances the one that took most.
    disturbed = [phase.mean_bps for name, phase in flow.phases.items() if name != QUIET]
    means = (min(means, default=None) for means in (quiet, disturbed))
    return " / ".join(
        "-" if mean is None else f"{mean / flow.expected_goodput_bps * 100:.0f}" for mean in means
    )


def _known(flow: FlowSummary | None, name: str) -> str:
    phase = flow.phases.get(name) if flow else None
    if flow is None or phase is None or not flow.expected_goodput_bps:
        return "-"
    mean = f"{phase.mean_bps / flow.expected_goodput_bps * 100:.1f}"
    if phase.intervals is None:
        return mean
    return f"{mean} ± {phase.intervals.mean_bps.half / flow.expected_goodput_bps * 100:.1f}"


def _over(summaries: Sequence[Summary | None]) -> str:
    """Say what intervals are made of."""
    return tables.over(
        phase.intervals.mean_bps.unit
        for summary in summaries
        for flow in _promised(summary)
        for phase in flow.phases.values()
        if phase.intervals
    )
