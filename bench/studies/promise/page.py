"""What a network claims and keeps: ``promise.html``, complete in itself, and tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from bench.presentation import again, report
from bench.recording.directory import UNFINISHED
from bench.studies import study
from bench.studies.promise.index import NumberResult, Promise, Result
from bench.studies.promise.report import SENTENCES, Report
from testbed.scenario.units import format_bps

SYMBOLS = {**report.SYMBOLS, "not claimed": "–"}
STATE_CLASSES = {"held": "met", "violated": "missed", "invalid": "muted", "not claimed": "muted"}
TOP = 12  # others that are named


def render(directory: Path, found: Promise, told: Report) -> str:
    """Return the page."""
    name = directory.name.removesuffix(UNFINISHED)
    return (
        report.templates()
        .get_template("promise.html.j2")
        .render(
            run_id=name,
            found=found,
            told=told,
            sentences=SENTENCES,
            symbols=SYMBOLS,
            classes=STATE_CLASSES,
            quantity=quantity,
            top=TOP,
            figures_again=again.figures(name, study.request(directory)),
        )
    )


def quantity(number: NumberResult, value: float | None) -> str:
    """Return a value of a number as people read it; a dash without one."""
    if value is None:
        return "–"
    if number.unit == "bit/s":
        return str(format_bps(value))
    if number.unit == "s":
        return f"{value * 1e3:.2f} ms"
    if number.unit == "share":
        return f"{value:.3f}"
    return f"{value:,.0f} {'' if number.unit == '1' else number.unit}".strip()


STYLES = {"held": "green", "violated": "red", "invalid": "yellow", "not claimed": "dim"}


def tables(found: Promise) -> Sequence[Table]:
    """Return a table for each profile."""
    return [_table(found, profile, found.of(profile)) for profile in found.profiles]


def _table(found: Promise, profile: str, results: Sequence[Result]) -> Table:
    table = Table(title=f"network {found.network}, profile {profile}", title_justify="left", box=None)
    table.add_column("check", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("what was seen")
    table.add_column("CPU s/Gbit", justify="right", no_wrap=True)
    for one in results:
        cost = "–" if one.cpu_s_per_gbit is None else f"{one.cpu_s_per_gbit:.2f}"
        table.add_row(one.name, Text(one.state, STYLES[one.state]), Text(one.words), cost)
    return table


def claimed(found: Promise) -> str:
    """Return, as a sentence, what the network says of itself."""
    said = " and ".join(f"a {claim} ({SENTENCES[claim]})" for claim in found.claims)
    return f"network {found.network} claims {said or 'nothing'}"
