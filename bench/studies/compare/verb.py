"""The verb that says whether one run is better than another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bench.analysis import next_steps
from bench.console import documents
from bench.console.documents import Document
from bench.console.messages import lead, say
from bench.console.statuses import HELD, INVALID, VIOLATED
from bench.presentation import commands
from bench.presentation.figures import sheet as sheets
from bench.presentation.figures.sheet import Sheet
from bench.presentation.tables import borderless
from bench.presentation.wording import verbatim
from bench.recording import atomic
from bench.studies.compare import comparison as comparing
from bench.studies.compare import figure as figure
from bench.studies.compare import sides
from bench.studies.compare.comparison import Comparison, Finding, Row

COMPARED = "compared"  # below the recordings: the figures
STYLES = {"same": "green", "better": "bold green", "worse": "bold red", "cannot tell": "bold yellow"}
STATUS: dict[Finding, int] = {"same": HELD, "better": HELD, "worse": VIOLATED, "cannot tell": INVALID}


def compare(
    one: str,
    other: str,
    across_machines: bool,
    document: Document,
    reports: str | Path,
    size: Mapping[str, str] = MappingProxyType({}),
) -> int:
    """Compare recordings, matrices or directories of recordings, and return the worst finding's status.

    ``size``: preset, width, font_size and format of the figure of both, as far as said.
    """
    reports, sheet = Path(reports), sheets.asked(**size) or sheets.PAGE
    places = sides.find(one, reports), sides.find(other, reports)
    found, others = (sides.runs(place) for place in places)
    both = {name: (found[name], others[name]) for name in found if name in others}
    if not both:
        raise LookupError(f"{places[0]} and {places[1]} have no recording of the same name")
    comparisons, figures = _compared(both, across_machines, sheet, reports)
    alone = sorted(found.keys() ^ others.keys())
    findings = [comparison.finding for comparison in comparisons]
    finding = comparing.worst([*findings, "cannot tell"] if alone else findings)
    _show(finding, comparisons, alone, figures)
    decisive = findings.index(finding) if finding in findings else 0
    step = commands.of_step(next_steps.of_recording(str([*both.values()][decisive][1]), str(reports)))
    lead(step)
    document |= {
        "finding": finding,
        "comparisons": [
            {**comparison.model_dump(mode="json"), "finding": comparison.finding}
            for comparison in comparisons
        ],
        "alone": alone,
        "figures": [str(file.absolute()) for file in figures],
        "next": documents.following(step),
    }
    return STATUS[finding]


def _compared(
    both: Mapping[str, tuple[Path, Path]], across_machines: bool, sheet: Sheet, reports: Path
) -> tuple[list[Comparison], list[Path]]:
    """Return what each two recordings of a name say of each other, and the files with their figures."""
    comparisons: list[Comparison] = []
    figures: list[Path] = []
    for name, places in both.items():
        one, other = (sides.read(place) for place in places)
        comparison = comparing.compare(one, other, name, across_machines)
        drawn = _drawn(places, comparison, comparing.expected(one, other, comparison.scale), sheet)
        comparisons.append(comparison)
        figures += _kept(drawn, comparison, sheet, reports)
    return comparisons, figures


def _drawn(
    places: tuple[Path, Path],
    comparison: Comparison,
    expected: Mapping[str, tuple[float, float]],
    sheet: Sheet,
) -> Mapping[str, bytes]:
    """Return the figure of two runs by format."""
    one, other = (
        figure.Side(
            f"{'AB'[number]}: {comparison.runs[number]}, {comparison.verdicts[number]}",
            *sides.received(place),
            {flow: goodputs[number] for flow, goodputs in expected.items()},
        )
        for number, place in enumerate(places)
    )
    return figure.render((one, other), comparison.finding, sheet)


def _kept(drawn: Mapping[str, bytes], comparison: Comparison, sheet: Sheet, reports: Path) -> list[Path]:
    """Write a figure to where those of comparisons are, and return its files."""
    place = reports / COMPARED / "--".join(comparison.runs)
    files = {place / sheet.file(figure.NAME, kind): content for kind, content in drawn.items()}
    place.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        atomic.write(file, content)
    return list(files)


def _show(finding: Finding, comparisons: list[Comparison], alone: list[str], figures: Sequence[Path]) -> None:
    console = Console()
    for comparison in comparisons:
        console.print(_table(comparison))
        for note in _notes(comparison):
            say(f"  note: {note}")
        console.print()
    for file in figures:
        say(f"figure: {file}")
    for name in alone:
        say(f"{name}: there is nothing to compare it with")
    say(finding, STYLES[finding])


def _table(comparison: Comparison) -> Table:
    """Return a row for each flow and phase: both means, the difference and its interval, in % of expected."""
    found = borderless(f"{comparison.name or 'means'}, in % of what is expected")
    found.add_column("flow", overflow="fold", ratio=1)
    found.add_column("phase", overflow="fold")
    for heading in ("A", "B", "B - A", "95 %"):
        found.add_column(heading, justify="right", no_wrap=True)
    found.add_column("", no_wrap=True)
    last = None
    for row in comparison.rows:
        flow = verbatim(row.flow if row.flow != last else "")
        found.add_row(flow, verbatim(row.phase), *_numbers(row), Text(row.finding, STYLES[row.finding]))
        last = row.flow
    return found


def _notes(comparison: Comparison) -> Iterator[str]:
    """Yield what else is to be known of both."""
    for which, run, verdict in zip("AB", comparison.runs, comparison.verdicts, strict=True):
        doubt = ", so a difference may be its machine's" if verdict == "invalid" else ""
        yield f"{which} is {run}, {verdict}{doubt}"
    if comparison.scale != 1:
        yield f"B has {comparison.scale:g} of A's rates"
    yield from comparison.rates
    for what, (one, other) in {"enforcement": comparison.enforcements, "commit": comparison.commits}.items():
        if one != other:
            yield f"{what}: {one}, and {other}"
    yield from (f"another machine: {difference}" for difference in comparison.machines)
    yield from dict.fromkeys(f"cannot tell: {row.reason}" for row in comparison.rows if row.reason)


def _numbers(row: Row) -> tuple[str, str, str, str]:
    interval = "–" if row.low is None else f"{_percent(row.low, '+')} to {_percent(row.high, '+')}"
    return _percent(row.shares[0]), _percent(row.shares[1]), _percent(row.difference, "+"), interval


def _percent(share: float | None, sign: str = "") -> str:
    return "–" if share is None else f"{share * 100:{sign}.2f}"
