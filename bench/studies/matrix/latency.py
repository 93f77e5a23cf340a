"""What requests of a scenario took under each enforcement, for terminal and page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.table import Table

from bench.analysis.phases import QUIET
from bench.analysis.summary import RequestsPhaseSummary, Summary
from bench.presentation import words
from bench.presentation.words import verbatim
from bench.studies.matrix.index import Matrix
from testbed.scenario.units import format_digits


class Row(NamedTuple):
    """One kind of requests in one phase; an entry for each enforcement, in the matrix' order."""

    name: str
    phase: str
    took: Sequence[RequestsPhaseSummary | None]


def rows(index: Matrix, summaries: dict[tuple[str, str], Summary], scenario: str) -> Iterator[Row]:
    """Yield what each kind of requests took in each phase; nothing of a scenario without."""
    columns = [summaries.get((scenario, enforcement)) for enforcement in index.enforcements]
    phases: dict[tuple[str, str], None] = {}
    for summary in columns:
        for one in summary.requests if summary else []:
            phases |= dict.fromkeys((one.name, phase) for phase in one.phases)
    names = list(dict.fromkeys(name for name, _ in phases))
    for name, phase in sorted(phases, key=lambda key: (names.index(key[0]), key[1] != QUIET)):
        yield Row(name, phase, [_phase(summary, name, phase) for summary in columns])


def compare(index: Matrix, summaries: dict[tuple[str, str], Summary], scenario: str) -> Table | None:
    """Return a table with a column for each enforcement: both percentiles; None without requests.

    Intervals are left to the page: with them no terminal is wide enough.
    """
    known = list(rows(index, summaries, scenario))
    if not known:
        return None
    table = Table(
        title=verbatim(f"{scenario}: from due to answered in ms, p50 / p99"),
        title_justify="left",
        title_style="",
        box=None,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    table.add_column("requests", overflow="fold")
    table.add_column("phase", overflow="fold")
    for enforcement in index.enforcements:
        table.add_column(enforcement, justify="right", no_wrap=True)
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
    return f"{words.percentile(phase.p50_s)} / {words.percentile(phase.p99_s)}"


def _phase(summary: Summary | None, name: str, phase: str) -> RequestsPhaseSummary | None:
    requests = next((one for one in summary.requests if one.name == name), None) if summary else None
    return requests.phases.get(phase) if requests else None
