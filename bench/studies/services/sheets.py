"""The study's tables: what hints keep in a zone, who carries what, and what promises are worth."""

from __future__ import annotations

from bench.analysis.statistics import supported
from bench.presentation.tables import Sheet
from bench.studies.services.index import Measured, Services
from testbed.scenario.units import format_share

NOTHING = "–"
IMPLAUSIBLE = 0.001  # differences this unlikely are no errors of counting


def sheets(found: Services) -> list[Sheet]:
    """Return what is there to be shown."""
    return [sheet for sheet in (requests(found), promises(found)) if sheet.rows]


def markdown(found: Services) -> str:
    """Return all tables for a page."""
    return "\n".join(sheet.markdown() for sheet in sheets(found))


def requests(found: Services) -> Sheet:
    """Return a row for each case and mode."""
    title = (
        "requests: bytes between zones for each, and of those with hints off; p50 / p99 from when they were "
        "due, in ms; load of the endpoint that has most, counted / expected; how many were lost"
    )
    headings = ["case", "hints", "endpoints", "bytes", "of off", "p50 / p99", "most", "lost"]
    rows = [
        [one.case, one.mode, *(["invalid", *[NOTHING] * 5] if one.invalid else _cells(one))]
        for one in found.results
    ]
    return Sheet(title, headings, rows)


def promises(found: Services) -> Sheet:
    """Return what a promise to a service in another zone is worth."""
    title = "a promise of 200 Mbit/s to a service in another zone, while others want the trunk"
    rows = [
        [row.case, row.verdict or NOTHING, NOTHING if row.attained is None else format_share(row.attained)]
        for row in found.rows
        if row.recording
    ]
    return Sheet(title, ["case", "verdict", "of what is expected"], rows)


def _cells(one: Measured) -> list[str]:
    return [
        hinted(one),
        f"{one.between_each:.0f}",
        NOTHING if one.of_off is None else share(one.of_off),
        times(one),
        most(one),
        str(one.lost),
    ]


def most(one: Measured) -> str:
    """Return the largest load, counted and expected; behind a colon, if it cannot be an error of counting."""
    if one.worst_expected is None:
        return share(one.worst)
    implausible = one.likely is not None and one.likely < IMPLAUSIBLE
    expected = f"{one.worst * 100:.0f} / {share(one.worst_expected)}"
    return f"{expected}: implausible" if implausible else expected


def hinted(one: Measured) -> str:
    """Return how many endpoints are hinted for each zone."""
    return " / ".join(str(count) for count in one.hinted.values()) or "all"


def share(value: float) -> str:
    """Return a share in whole per cent, or, below one, in tenths."""
    return f"{value * 100:.1f} %" if 0 < value < 0.01 else f"{value * 100:.0f} %"


def times(one: Measured) -> str:
    """Return median and 99th percentile, in milliseconds; of too few requests the median alone."""
    told = supported(0.99, one.requests) == 0.99
    return f"{milliseconds(one.took.p50_s)} / {milliseconds(one.took.p99_s) if told else NOTHING}"


def milliseconds(seconds: float | None) -> str:
    """Return a time to two digits, or that it is among those that were lost."""
    return (
        "lost" if seconds is None else f"{seconds * 1000:.3g}" if seconds < 0.1 else f"{seconds * 1000:.0f}"
    )
