"""``promise.html``: what a network claims and keeps, as one page that is complete in itself."""

from __future__ import annotations

from pathlib import Path

from bench.presentation import again, report
from bench.recording.directory import UNFINISHED
from bench.studies import study
from bench.studies.promise.index import NumberResult, Promise
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
