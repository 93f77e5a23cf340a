"""``docs/explanation/services-measured.md``: what Kubernetes' page says of hints, beside what was measured.

Its words are the template's, its numbers those of the study that is kept.
"""

from __future__ import annotations

from bench.presentation import report
from bench.studies.services import sheets
from bench.studies.services.index import Measured, Services
from bench.studies.services.results import MOST_LOAD, ROUND_TRIP_S, fall_in_round_trips
from bench.studies.services.sheets import share
from bench.studies.services.situations import REQUESTS_PER_S, ROUND_TRIPS, SITUATIONS
from testbed.resources import HOME
from testbed.scenario.units import format_share

FILE = HOME / "docs" / "explanation" / "services-measured.md"


def render(index: bytes | None) -> str | None:
    """Return the docs page of the study whose whole index this is; None without one, or without docs."""
    return page(Services.model_validate_json(index)) if index and FILE.parent.is_dir() else None


def page(found: Services) -> str:
    """Return the page of a study that has all cases and modes. Raises KeyError for others."""

    measured = found.measured

    def at(case: str, mode: str) -> Measured:
        return measured[case][mode]

    templates = report.templates("bench.studies.services").overlay(autoescape=False)
    templates.filters = {
        **templates.filters,
        "share": share,
        "exact": format_share,
        "hinted": sheets.hinted,
        "most": lambda one: share(one.worst),
        "computed": lambda one: f"{share(one.worst)} ({share(one.worst_expected)} by the hints)",
        "off": lambda one: f"off: *{one.why_not.partition(':')[0]}*",
        "left": lambda one: share(one.of_off),
        "idle": lambda one: sum(load == 0 for load in one.load.values()),
        "times": sheets.times,
        "p50": lambda one, zone: sheets.milliseconds(one.by_zone[zone].p50_s),
        "kilobytes": lambda one: f"{one.between_bytes / 1000:,.0f} kB",
        "lost": lambda one: f"{one.lost or 'none'} of {one.requests:,} requests",
    }
    return templates.get_template("services.md.j2").render(
        at=at,
        rows=[row for row in found.rows if row.verdict and row.attained is not None],
        situations=SITUATIONS,
        round_trip=f"{ROUND_TRIP_S * 1000:g}",
        round_trips=ROUND_TRIPS,
        rate=f"{REQUESTS_PER_S:g}",
        fall=fall_in_round_trips(at("in-proportion", "off"), at("in-proportion", "auto")),
        most_load=MOST_LOAD,
        tables=sheets.markdown(found),
    )
