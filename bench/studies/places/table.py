"""A study of places for the terminal: what was measured, and what the paper says."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from bench.presentation.sheet import borderless
from bench.studies.places.index import CLAIMS, SITUATIONS, Answers, Places, Row, Situation
from testbed.scenario.units import Unit, unit_for

HEADINGS: dict[Situation, str] = {
    "alone": "A-1 alone",
    "towards": "towards pods",
    "sending": "both send",
    "disturbed": "and containers",
}


def rates(study: Places) -> Table:
    """Return the table of what each pod got, mean payload."""
    unit = unit_for(rate for row in study.rows for rate in row.expected_bps.values())
    expected = next((row.expected_bps for row in study.rows if row.expected_bps), {})
    table = _table(f"A-1 / A-2 in {unit.name}; promised goodput {_pair(expected, unit)}")
    for situation in SITUATIONS:
        table.add_column(HEADINGS[situation], justify="right", no_wrap=True)
    for row in study.rows:
        cells = [_pair(row.rates_bps.get(situation, {}), unit) for situation in SITUATIONS]
        table.add_row(row.place, row.classes, *cells)
    return table


def answers(study: Places) -> Table:
    """Return the table of what that means, beside the paper's claims."""
    table = _table("what that shows; the paper's claims: per pod, shapes what is sent")
    for heading in ("per pod", "shapes", "floor", "idle used", "verdict", "paper"):
        table.add_column(heading, no_wrap=True)
    for row in study.rows:
        shown = _answers(row.answers) if row.answers else ("?",) * 4
        table.add_row(row.place, row.classes, *shown, row.verdict or "not run", claim(row))
    return table


def claim(row: Row) -> Text:
    """Return what the paper claims of the row's place: per source pod, in the direction of sending."""
    said = CLAIMS.get(row.place)
    return Text("–") if said is None else Text(f"{_word(said.per_pod, '–')}, {_word(said.egress)}")


def _answers(found: Answers) -> tuple[str, str, str, str]:
    return (
        "towards" if found.per_pod_towards and not found.per_pod_sending else _word(found.per_pod_sending),
        _direction(found),
        _word(found.floor),
        _word(found.idle_used),
    )


def _direction(found: Answers) -> str:
    directions = (("sent", found.shapes_egress), ("towards", found.shapes_towards))
    words = [word for word, shaped in directions if shaped]
    unknown = "?" if None in (found.shapes_egress, found.shapes_towards) else "nothing"
    return " + ".join(words) or unknown


def _word(answer: bool | None, unknown: str = "?") -> str:
    return unknown if answer is None else "yes" if answer else "no"


def _pair(got: dict[str, float], unit: Unit) -> str:
    return " / ".join(f"{rate / unit.bits_per_second:.3g}" for rate in got.values()) or "–"


def _table(title: str) -> Table:
    table = borderless(title)
    table.add_column("place", no_wrap=True)
    table.add_column("classes", no_wrap=True)
    return table
