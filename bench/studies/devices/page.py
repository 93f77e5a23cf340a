"""``docs/explanation/devices-measured.md``: what a thesis asks of a way to devices, beside what was measured.

Its words are the template's, its numbers those of the study that is kept.
"""

from __future__ import annotations

from bench.presentation import report
from bench.studies.devices import sheets
from bench.studies.devices.index import Devices
from bench.studies.devices.ways import CLIENTS, HANDLERS, WAYS
from testbed.resources import HOME
from testbed.scenario.units import format_share

FILE = HOME / "docs" / "explanation" / "devices-measured.md"


def render(index: bytes | None) -> str | None:
    """Return the docs page of the study whose whole index this is; None without one, or without docs."""
    return page(Devices.model_validate_json(index)) if index and FILE.parent.is_dir() else None


def page(found: Devices) -> str:
    """Return the page of a study that has all ways and parts. Raises KeyError for others."""
    templates = report.templates("bench.studies.devices").overlay(autoescape=False)
    templates.filters = {
        **templates.filters,
        "share": format_share,
        "exchange": lambda one: sheets.times(one, "tcp"),
        "gigabits": lambda one: sheets.cell(one.bits_per_second, lambda rate: f"{rate / 1e9:.1f}"),
        "seconds": lambda one: sheets.cell(one.per_gigabyte_s, "{:.2f}".format),
        "times": lambda spread: sheets.cell(spread, "{:.2f}".format),
        "mebibytes": lambda held: f"{held.bytes / 2**20:.1f}",
    }
    at_rest = {(one.way, one.handlers): one.held for one in found.handlers}
    return templates.get_template("devices.md.j2").render(
        way=found.by_way,
        ways=WAYS,
        at_rest=at_rest,
        most=HANDLERS[-1],
        clients={one.way: one for one in found.clients},
        count=CLIENTS,
        promises={row.case: row for row in found.rows},
        tables=sheets.markdown(found),
    )
