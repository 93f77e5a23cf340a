"""``matrix.html``: one page that compares the cases of a matrix, complete in itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.table import Table
from rich.text import Text

from bench.analysis.phases import QUIET
from bench.analysis.summary import FlowSummary, RequestsPhaseSummary, Summary
from bench.presentation import commands, report, tables, wording
from bench.presentation.tables import STYLES, borderless
from bench.presentation.wording import verbatim
from bench.recording.directory import UNFINISHED, Recording
from bench.studies import study
from bench.studies.matrix.index import HEADINGS, Matrix, MatrixCase
from testbed.scenario.units import format_digits, unit_for

TITLE = "A panel for each scenario and enforcement: what each guaranteed flow got against time"
CAPTION = (
    "Payload that arrived, by the receivers' records; what is dashed is expected. "
    "Each case's own page has every sample."
)


def render(directory: Path, index: Matrix, summaries: dict[tuple[str, str], Summary], png: bytes) -> str:
    """Return the page; ``png`` is the figure."""
    name, asked = directory.name.removesuffix(UNFINISHED), study.request(directory)
    rates = [flow.guarantee_bps for summary in summaries.values() for flow in summary.flows]
    return report.rendered(
        "matrix.html.j2",
        "bench.studies.matrix",
        run_id=name,
        figures_again=commands.figures(name, asked),
        asked=commands.study(asked, "matrix") if asked else None,
        index=index,
        summaries=summaries,
        headings=HEADINGS,
        phases=_phases(summaries),
        intervals_of=_intervals_of(summaries.values()),
        symbols=report.SYMBOLS,
        unit=unit_for(rates),
        figure={"png": report.inline(png), "title": TITLE, "caption": CAPTION, "charted": False},
        requests={scenario: list(latencies(index, summaries, scenario)) for scenario in index.scenarios},
        briefly=briefly,
        pages={
            case.recording: f"{case.recording}/{Recording(directory / case.recording).report_file.name}"
            for case in index.rows
            if case.recording is not None
        },
    )


def _intervals_of(summaries: Iterable[Summary | None]) -> str:
    """Say what intervals are made of."""
    return tables.over(
        phase.intervals.mean_bps.unit
        for summary in summaries
        for flow in (summary.flows if summary else ())
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


def rates(index: Matrix, summaries: dict[tuple[str, str], Summary], scenario: str) -> Table:
    """Return a table with a column for each enforcement: what each flow got, as a share of what it should.

    Of several repetitions each phase has a row of its own, and each mean half of its 95 % interval.
    """
    columns = [summaries.get((scenario, enforcement)) for enforcement in index.enforcements]
    cases = [index.case(scenario, enforcement) for enforcement in index.enforcements]
    several = index.repetitions > 1
    what = f"± 95 % {_intervals_of(columns)}" if several else "quiet / disturbed"
    title = f"{scenario}: observed mean in % of the expected goodput, {what}"
    texts = ["flow", "phase"] if several else ["flow"]
    table = borderless(title, 1 if several else 2, texts, index.enforcements)
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


class Latencies(NamedTuple):
    """One kind of requests in one phase; an entry for each enforcement, in the matrix' order."""

    name: str
    phase: str
    took: Sequence[RequestsPhaseSummary | None]


def latencies(index: Matrix, summaries: dict[tuple[str, str], Summary], scenario: str) -> Iterator[Latencies]:
    """Yield what each kind of requests took in each phase; nothing of a scenario without."""
    columns = [summaries.get((scenario, enforcement)) for enforcement in index.enforcements]
    phases: dict[tuple[str, str], None] = {}
    for summary in columns:
        for one in summary.requests if summary else []:
            phases |= dict.fromkeys((one.name, phase) for phase in one.phases)
    names = list(dict.fromkeys(name for name, _ in phases))
    for name, phase in sorted(phases, key=lambda key: (names.index(key[0]), key[1] != QUIET)):
        yield Latencies(name, phase, [_phase(summary, name, phase) for summary in columns])


def requests(index: Matrix, summaries: dict[tuple[str, str], Summary], scenario: str) -> Table | None:
    """Return a table with a column for each enforcement: both percentiles; None without requests.

    Intervals are left to the page: with them no terminal is wide enough.
    """
    known = list(latencies(index, summaries, scenario))
    if not known:
        return None
    title = f"{scenario}: from due to answered in ms, p50 / p99"
    table = borderless(title, 1, ["requests", "phase"], index.enforcements)
    last = ""
    for row in known:
        table.add_row(verbatim("" if row.name == last else row.name), row.phase, *map(_shortly, row.took))
        last = row.name
    return table


def briefly(phase: RequestsPhaseSummary | None) -> str:
    """Return the two percentiles, the second with half of its interval where that is known."""
    if phase is None:
        return "-"
    told = _percentiles(phase)
    if phase.p99_interval_s:
        told += f" ± {format_digits(phase.p99_interval_s.half * 1000)}"
    return f"{told}, {phase.lost} lost" if phase.lost else told


def _shortly(phase: RequestsPhaseSummary | None) -> str:
    if phase is None:
        return "-"
    return _percentiles(phase) + (f"\n{phase.lost} lost" if phase.lost else "")


def _percentiles(phase: RequestsPhaseSummary) -> str:
    return f"{wording.percentile(phase.p50_s)} / {wording.percentile(phase.p99_s)}"


def _phase(summary: Summary | None, name: str, phase: str) -> RequestsPhaseSummary | None:
    requests = next((one for one in summary.requests if one.name == name), None) if summary else None
    return requests.phases.get(phase) if requests else None
