"""``trend.html``: every number of every night of one machine, complete in itself.

Its lines are SVG in the page, which need no script. What is looked at first is open: the flows' rates, and
whatever else changed; the rest is folded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.presentation import report as pages
from bench.studies.nightly import metrics
from bench.studies.nightly.findings import Finding
from bench.studies.nightly.night import Night
from bench.studies.nightly.report import EXPLANATION, HEADINGS, LOOKS, WORDS, Report, line
from bench.studies.nightly.report import rows as rows_of
from bench.studies.nightly.shifts import Shift
from testbed.scenario.units import unit_for

Values = Sequence[float | None]  # by night; None: it has none
OF_NIGHT = ("run_id", "started_at", "commit", "verdict", "causes", "beside")  # in the page's data
NEWEST = 30  # nights that are open in the page
COLUMNS = 5  # of numbers, beside the night: more than six columns are hard to read
MARGIN = 0.02  # of the level: a chart shows so much above and below it at least, so that noise looks small
AROUND = 0.08  # of what all numbers span: what is left free above and below them


@dataclass(frozen=True)
class Frame:
    """Where in a chart its axes are, in units of its own."""

    width: int = 440
    height: int = 202
    left: int = 54
    right: int = 432
    top: int = 56
    bottom: int = 180
    rows: int = 4  # of texts above the line, of changes
    row: int = 13  # its height
    text: int = 125  # its width: a day and a commit


FRAME = Frame()


def render(report: Report) -> str:
    """Return the page."""
    from markupsafe import Markup

    nights = report.nights
    shown = data(nights, report.shifts)
    # Within a script element nothing but "<" could end it (HTML, section 13.1.2).
    embedded = json.dumps(shown, ensure_ascii=False).replace("<", "\\u003c")
    main, rest = rows_of(nights, report.findings)
    series = {metric["name"]: metric["values"] for metric in shown["metrics"]}

    charts = [
        [_chart(row.metric, series[row.metric], nights, report.shifts) for row in rows]
        for rows in (main, rest)
    ]
    used = [mark["row"] or 0 for each in charts for one in each for mark in one["changes"]]

    return pages.rendered(
        "trend.html.j2",
        "bench.studies.nightly",
        trend=shown,
        embedded=Markup(embedded),
        symbols={**pages.SYMBOLS, "failed": "!"},
        look=LOOKS[report.judgement.gate],
        sentence=report.judgement.sentence,
        told=[*map(line, report.findings), *report.notes()],
        changes=[_change(shift, nights, report.findings) for shift in reversed(report.shifts)],
        headings=HEADINGS,
        explanation=EXPLANATION,
        tables=list(zip((main, rest), charts, strict=True)),
        unused=FRAME.row * (FRAME.rows - 1 - max(used, default=0)),  # above all charts
        frame=FRAME,
        marks=[", ".join(_marks(index, report.shifts)) for index in range(len(nights))],
        worse=[_is_worse(index, report.shifts) for index in range(len(nights))],
        newest=NEWEST,
        groups=list(_groups(shown["metrics"])),
    )


def data(nights: Sequence[Night], shifts: Sequence[Shift]) -> dict[str, Any]:
    """Return what the page shows, by night in order: run ids, verdicts, metrics, and what changed."""
    seen = [metrics.values(night) for night in nights]
    names = dict.fromkeys(name for night in seen for name in night)
    return {
        "machine": nights[-1].machine,
        "nights": [{name: getattr(night, name) for name in OF_NIGHT} for night in nights],
        "metrics": [
            {
                "name": name,
                "unit": metrics.kind_of(name).unit,
                "bigger_is_better": metrics.kind_of(name).bigger_is_better,
                "values": [night.get(name) for night in seen],
            }
            for name in names
        ],
        "changes": [
            {
                "metric": shift.metric,
                "kind": shift.kind,
                "first_night": nights[shift.first].run_id,
                "before": shift.change.before,
                "after": shift.change.after,
                "back_since": None if shift.undone is None else nights[shift.undone].run_id,
            }
            for shift in shifts
        ],
    }


def _change(shift: Shift, nights: Sequence[Night], findings: Sequence[Finding]) -> dict[str, str]:
    """Return a change as a row: when, with which commits, of what, from where, to where, and what of it."""
    first, before = nights[shift.first], nights[shift.last]
    by = next((one.acknowledged for one in findings if shift in one.shifts), None)
    state = WORDS[shift.kind]
    levels = metrics.shown(shift.metric, shift.change.before, shift.change.after)
    if shift.undone is not None:
        state += f", until {nights[shift.undone].started_at[:10]}"
    elif by is not None:
        state += f", acknowledged until {by.until}"
    return {
        "date": first.started_at[:10],
        "commits": first.commit[:12]
        if first.commit == before.commit
        else f"{before.commit[:12]}..{first.commit[:12]}",
        "name": metrics.title(shift.metric),
        "before": levels[0],
        "after": levels[1],
        "state": state,
    }


def _marks(night: int, shifts: Sequence[Shift]) -> Iterator[str]:
    """Yield what changed in a night, one text for each kind of change."""
    for kind, word in WORDS.items():
        names = [shift.metric for shift in shifts if shift.first == night and shift.kind == kind]
        if names:
            yield f"{word}: {metrics.pattern(names)}"


def _is_worse(night: int, shifts: Sequence[Shift]) -> bool:
    return any(
        shift.kind == "worse" and shift.first <= night and (shift.undone is None or night < shift.undone)
        for shift in shifts
    )


def _groups(shown: Sequence[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the numbers of each flow, and of each scenario, in tables of few columns."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for metric in shown:
        groups.setdefault(metrics.owner(metric["name"]), []).append(metric)
    for owner, found in groups.items():
        for begin in range(0, len(found), COLUMNS):
            yield owner, [_column(metric, owner) for metric in found[begin : begin + COLUMNS]]


def _column(metric: dict[str, Any], owner: str) -> dict[str, Any]:
    scale, unit = _unit(metric["name"], metric["values"])
    digits = ".3f" if metric["unit"] == metrics.RATE else ".4g"
    return {
        "name": metric["name"].removeprefix(f"{owner}/"),
        "unit": unit,
        "texts": ["–" if value is None else format(value / scale, digits) for value in metric["values"]],
    }


def _chart(metric: str, values: Values, nights: Sequence[Night], shifts: Sequence[Shift]) -> dict[str, Any]:
    """Return a series as it is drawn: its line, its axes, and a mark for each change."""
    seen = [value for value in values if value is not None]
    scale, unit = _unit(metric, seen)
    level = abs(median(seen))
    free = max(AROUND * (max(seen) - min(seen)), MARGIN * level - (max(seen) - min(seen)) / 2)
    low, high = min(seen) - free, max(seen) + free
    own = [shift for shift in shifts if shift.metric == metric]
    across = [_across(index, len(nights)) for index in range(len(nights))]

    def up(value: float) -> float:
        share = (value - low) / (high - low) if high > low else 0.5
        return round(FRAME.bottom - share * (FRAME.bottom - FRAME.top), 1)

    return {
        "name": metrics.title(metric),
        "unit": unit,
        "line": _line(zip(across, (None if value is None else up(value) for value in values), strict=True)),
        "rows": [(up(tick * scale), f"{tick:.6g}") for tick in _ticks(low / scale, high / scale)],
        "days": [(across[index], nights[index].started_at[:10]) for index in _days(len(nights))],
        "changes": [
            {
                "x": across[shift.first],
                "row": row,
                "left": _left(across[shift.first]),
                "text": f"{nights[shift.first].started_at[:10]} {nights[shift.first].commit[:7]}",
            }
            for shift, row in zip(own, _rows([across[shift.first] for shift in own]), strict=True)
        ],
    }


def _left(x: float) -> bool:
    """Tell whether a mark's text stands left of it."""
    return x > (FRAME.left + FRAME.right) / 2


def _rows(places: Sequence[float]) -> list[int | None]:
    """Return for each mark the lowest row in which its text meets no later one; None: there is none."""
    taken: list[tuple[float, int | None]] = []  # where texts begin, and their rows
    for x in reversed(places):
        begin = x - FRAME.text if _left(x) else x
        near = {row for other, row in taken if abs(begin - other) <= FRAME.text}
        taken.append((begin, next((row for row in range(FRAME.rows) if row not in near), None)))
    return [row for _, row in reversed(taken)]


def _unit(metric: str, values: Values) -> tuple[float, str]:
    """Return by what numbers are divided to be shown, and in which unit they are then."""
    unit = metrics.kind_of(metric).unit
    if unit != metrics.RATE:
        return 1.0, unit
    chosen = unit_for(values)
    return chosen.bits_per_second, chosen.name


def _ticks(low: float, high: float) -> list[float]:
    from matplotlib.ticker import MaxNLocator

    ticks = MaxNLocator(nbins=4, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    return [float(tick) for tick in ticks if low <= tick <= high]


def _days(nights: int) -> list[int]:
    """Return the nights whose day is written: the first, the middle, and the last one."""
    return sorted({0, nights // 2, nights - 1} if nights > 4 else {0, nights - 1})


def _line(points: Iterable[tuple[float, float | None]]) -> str:
    """Return the path of a line, in SVG's words; it stops at a gap."""
    path, gap = [], True
    for x, y in points:
        if y is not None:
            path.append(f"M{x:g} {y:g}h0" if gap else f"L{x:g} {y:g}")
        gap = y is None
    return "".join(path)


def _across(index: int, nights: int) -> float:
    return round(FRAME.left + 4 + index / max(nights - 1, 1) * (FRAME.right - FRAME.left - 8), 1)
