"""Two runs beside each other, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from bench.analysis.compare import Comparison, Row
from bench.presentation.words import verbatim

STYLES = {"same": "green", "better": "bold green", "worse": "bold red", "cannot tell": "bold yellow"}


def table(comparison: Comparison) -> Table:
    """Return a row for each flow and phase: both means, the difference and its interval, in % of expected."""
    found = Table(
        title=verbatim(f"{comparison.name or 'means'}, in % of what is expected"),
        title_justify="left", title_style="", box=None, pad_edge=False, padding=(0, 1, 0, 0),
    )  # fmt: skip
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


def notes(comparison: Comparison) -> Iterator[str]:
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
