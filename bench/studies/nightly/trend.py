"""``trend.html``: every number of every night of one machine, complete in itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from bench.presentation import report
from bench.studies.nightly import metrics
from bench.studies.nightly.night import Night


def render(nights: Sequence[Night]) -> str:
    """Return the page."""
    from markupsafe import Markup

    # Within a script element nothing but "<" could end it (HTML, section 13.1.2).
    embedded = json.dumps(data(nights), ensure_ascii=False).replace("<", "\\u003c")
    return (
        report.templates()
        .get_template("trend.html.j2")
        .render(trend=data(nights), embedded=Markup(embedded), symbols={**report.SYMBOLS, "failed": "!"})
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
