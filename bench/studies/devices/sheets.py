"""The study's tables: what ways cost, what they hold, and what promises are worth."""

from __future__ import annotations

from collections.abc import Callable

from bench.presentation.tables import Sheet
from bench.studies.devices.index import Devices, Measured
from bench.studies.study import Spread
from testbed.scenario.units import format_share

NOTHING = "–"


def sheets(found: Devices) -> list[Sheet]:
    """Return what is there to be shown."""
    made = (ways(found), shares(found), handlers(found), clients(found), promises(found))
    return [sheet for sheet in made if sheet.rows]


def markdown(found: Devices) -> str:
    """Return all tables for a page."""
    return "\n".join(sheet.markdown() for sheet in sheets(found))


def ways(found: Devices) -> Sheet:
    """Return what each way costs."""
    title = (
        "ways to a device, medians of rounds: a new exchange by TCP and by UDP, p50 / p99 in ms; a flow "
        "of TCP; processors' time for a gigabyte of it, and for a datagram of 1400 bytes"
    )
    headings = ["way", "TCP", "UDP", "Gbit/s", "s/GB", "µs", "lost"]
    return Sheet(title, headings, [_way(one) for one in found.ways])


def _way(one: Measured) -> list[str]:
    return [
        one.way,
        times(one, "tcp"),
        times(one, "udp"),
        cell(one.bits_per_second, lambda rate: f"{rate / 1e9:.2f}"),
        cell(one.per_gigabyte_s, "{:.2f}".format),
        cell(one.per_packet_ns, lambda ns: f"{ns / 1000:.1f}"),
        f"{one.lost} of {one.exchanges}",
    ]


def shares(found: Devices) -> Sheet:
    """Return ways beside those of the same round."""
    title = "the same as shares, least and most of rounds: of `direct`, and of what `relay` costs a byte"
    rows = [
        [one.way, *(between(spread) for spread in (one.p50_of_direct, one.rate_of_direct, one.cost_of_relay))]
        for one in found.ways
    ]
    return Sheet(title, ["way", "TCP, p50", "Gbit/s", "cost"], rows)


def handlers(found: Devices) -> Sheet:
    """Return what connections hold at rest."""
    rows = [
        [one.way, str(one.handlers), str(one.held.processes), f"{one.held.bytes / 2**20:.1f}"]
        for one in found.handlers
    ]
    return Sheet("a proxy pod at rest", ["way", "handlers", "processes", "MiB"], rows)


def clients(found: Devices) -> Sheet:
    """Return what is left of clients by UDP."""
    rows = [
        [
            one.way,
            f"{one.answered:,}",
            *(
                f"{at.processes - one.before.processes:,} / {at.sockets - one.before.sockets:,}"
                f" / {at.tracked - one.before.tracked:,}"
                for at in (one.at_once, one.after)
            ),
            NOTHING if one.gone_s is None else f"{one.gone_s:.0f} s",
        ]
        for one in found.clients
    ]
    title = "1,000 clients by UDP, a datagram each: processes / sockets / tracked flows"
    return Sheet(title, ["way", "answered", "then", "in the end", "gone after"], rows)


def promises(found: Devices) -> Sheet:
    """Return what promises on a segment's link are worth."""
    connections = list(dict.fromkeys(name for row in found.rows for name in row.attained))
    rows = [
        [
            row.case,
            row.verdict or NOTHING,
            *(format_share(row.attained[one]) if one in row.attained else NOTHING for one in connections),
        ]
        for row in found.rows
        if row.recording
    ]
    title = "promises towards devices under a flood: of what is promised"
    return Sheet(title, ["enforcement", "verdict", *connections], rows)


def times(one: Measured, protocol: str) -> str:
    """Return median and 99th percentile of exchanges, in milliseconds."""
    return " / ".join(
        cell(each.get(protocol), lambda seconds: f"{seconds * 1000:.3g}") for each in (one.p50_s, one.p99_s)
    )


def cell(spread: Spread | None, shown: Callable[[float], str]) -> str:
    """Return a median; without a valid round, that there is none."""
    return "invalid" if spread is None else shown(spread.median)


def between(spread: Spread | None) -> str:
    """Return a median share with the least and the most."""
    return NOTHING if spread is None else f"{spread.median:.2f} ({spread.least:.2f} to {spread.most:.2f})"
