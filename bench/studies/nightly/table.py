"""Tonight's numbers beside those of the nights before: the table that summary and trend page begin with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bench.studies.nightly import metrics
from bench.studies.nightly.findings import Finding
from bench.studies.nightly.night import Night
from bench.studies.nightly.shifts import Shift

BEFORE = 20  # nights before tonight whose median is shown
HEADINGS = ("flow", "tonight", f"median of the last {BEFORE}", "change", "since when")
EXPLANATION = (
    f"Median: of the {BEFORE} nights before tonight. Change: with a date, from the level before that day "
    "to the one since, with the 95 % interval; without one, from the median to tonight."
)


@dataclass(frozen=True)
class Row:
    """One series; numbers are in its unit."""

    metric: str
    name: str
    tonight: float | None
    median: float | None
    change: str
    since: str

    @property
    def texts(self) -> Sequence[str]:
        """Its cells, in the order of HEADINGS."""
        return self.name, *metrics.shown(self.metric, self.tonight, self.median), self.change, self.since


def rows(nights: Sequence[Night], findings: Sequence[Finding]) -> tuple[list[Row], list[Row]]:
    """Return a row for each flow and whatever else a finding is about, and one for each other series."""
    standing = {shift.metric: (shift, finding) for finding in reversed(findings) for shift in finding.shifts}
    tonight = len(nights) - 1
    main: list[Row] = []
    rest: list[Row] = []
    for metric, seen in metrics.series(nights).items():
        row = _row(metric, seen, tonight, standing.get(metric))
        (main if metric in standing or metrics.is_rate_of_a_flow(metric) else rest).append(row)
    return main, rest


def _row(metric: str, seen: Mapping[int, float], tonight: int, standing: tuple[Shift, Finding] | None) -> Row:
    before = [value for index, value in seen.items() if tonight - BEFORE <= index < tonight]
    usual, value = median(before) if before else None, seen.get(tonight)
    change, since = "–", "–"
    if standing is not None:
        shift, finding = standing
        change, since = size(shift), when(finding)
        if finding.acknowledged:
            since += ", acknowledged"
    elif value is not None and usual:
        change = percentage(value / usual - 1)
    return Row(metric, metrics.title(metric), value, usual, change, since)


def size(shift: Shift) -> str:
    """Say how far tonight's level is from the one before a change, with the 95 % interval."""
    change = shift.now
    share, low, high = (change.share(each) for each in (change.difference, change.low, change.high))
    if share is None or low is None or high is None:
        unit = metrics.kind_of(shift.metric).unit
        return f"{change.difference:+.4g} ({change.low:+.4g} to {change.high:+.4g}) {unit}"
    return f"{percentage(share)} ({percentage(low)} to {percentage(high)})"


def percentage(share: float, signed: bool = True) -> str:
    """Return a share in per cent, with one decimal."""
    text = f"{share * 100:{'+' if signed else ''}.1f} %"
    return "0.0 %" if text in ("+0.0 %", "-0.0 %") else text


def when(finding: Finding) -> str:
    """Say since when a finding stands, and how long that is."""
    lasts = f"{_count(finding.nights, 'night')}, {_count(finding.days, 'day')}"
    return f"{finding.night.started_at[:10]} ({lasts})"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
