"""``trend.html``: every number of every night of one machine, complete in itself.

Its lines are SVG in the page, which need no script: they are small, and the numbers stand beside them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from statistics import median
from typing import Any

from bench.presentation import report
from bench.studies.nightly import metrics
from bench.studies.nightly.night import Night
from testbed.scenario.units import format_fixed, unit_for

WIDTH, HEIGHT = 240, 32  # of a line, in units of its own
Values = Sequence[float | None]  # by night; None: it has none


def render(nights: Sequence[Night]) -> str:
    """Return the page."""
    from markupsafe import Markup

    # Within a script element nothing but "<" could end it (HTML, section 13.1.2).
    shown = data(nights)
    embedded = json.dumps(shown, ensure_ascii=False).replace("<", "\\u003c")
    return (
        report.templates()
        .get_template("trend.html.j2")
        .render(
            trend=shown,
            embedded=Markup(embedded),
            symbols={**report.SYMBOLS, "failed": "!"},
            columns=[_column(metric, shown) for metric in shown["metrics"]],
            width=WIDTH,
            height=HEIGHT,
        )
    )


def data(nights: Sequence[Night]) -> dict[str, Any]:
    """Return what the page shows, by night in order: run ids, verdicts, metrics, and what was told."""
    seen = [metrics.values(night) for night in nights]
    names = dict.fromkeys(name for night in seen for name in night)
    return {
        "machine": nights[-1].machine,
        "nights": [
            {
                "run_id": night.run_id,
                "started_at": night.started_at,
                "commit": night.commit,
                "verdict": night.verdict,
                "causes": night.causes,
                "beside": night.beside,
            }
            for night in nights
        ],
        "metrics": [
            {
                "name": name,
                "unit": metrics.kind_of(name).unit,
                "bigger_is_better": metrics.kind_of(name).bigger_is_better,
                "values": [night.get(name) for night in seen],
            }
            for name in names
        ],
        "told": [said.model_dump() for night in nights for said in night.said],
    }


def _column(metric: dict[str, Any], shown: dict[str, Any]) -> dict[str, Any]:
    """Return a metric as it is shown: its unit, its numbers as texts by night, and its line."""
    values: Values = metric["values"]
    seen = [value for value in values if value is not None]
    unit = unit_for(seen)
    rates = metric["unit"] == "bit/s"

    def text(value: float | None) -> str:
        if rates or value is None:
            return format_fixed(value, unit)
        return f"{value:.4g}"

    first = [said["first_night"] for said in shown["told"] if said["metric"] == metric["name"]]
    return {
        "name": metric["name"],
        "unit": unit.name if rates else metric["unit"],
        "texts": [text(value) for value in values],
        "last": text(values[-1]),
        "median": text(median(seen)),
        "lowest": text(min(seen)),
        "highest": text(max(seen)),
        "line": _line(values),
        "changes": [
            _across(index, len(values))
            for index, night in enumerate(shown["nights"])
            if night["run_id"] in first
        ],
    }


def _line(values: Values) -> str:
    """Return the path of a line, in SVG's words, from the least value to the greatest; it stops at a gap."""
    seen = [value for value in values if value is not None]
    least, spread = min(seen), max(seen) - min(seen)
    path, before = [], None
    for index, value in enumerate(values):
        if value is not None:
            share = (value - least) / spread if spread else 0.5
            x, y = _across(index, len(values)), 2 + (1 - share) * (HEIGHT - 4)
            path.append(f"M{x:g} {y:.1f}h0" if before is None else f"L{x:g} {y:.1f}")
        before = value
    return "".join(path)


def _across(index: int, nights: int) -> float:
    return round(2 + index / max(nights - 1, 1) * (WIDTH - 4), 1)
