"""The study's tables, with a row for each backend; and the page of the docs that shows some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from bench.presentation.tables import Sheet
from bench.studies.backends.index import (
    GUARANTEE,
    INDEX,
    Backends,
    Convergence,
    First,
    Measured,
    RoundTrip,
    Row,
    Size,
    read,
)
from bench.studies.study import Spread
from testbed.resources import HOME
from testbed.scenario.texts import is_file

FILE = HOME / "docs" / "explanation" / "backends-measured.md"
BEGIN = "<!-- The tables of reports/reference/backends, by ./invokew figures --all -->\n"
END = "<!-- The end of these tables -->\n"
NOTHING = "–"
SPREAD = "median ± half of the spread"

One = TypeVar("One")


def sheets(found: Backends) -> list[Sheet]:
    """Return what is there to be shown."""
    made = (promises, packets, round_trips, firsts, moves, growth)
    return [sheet for make in made if (sheet := make(found)).rows]


def markdown(found: Backends) -> str:
    """Return all tables for a page."""
    return "\n".join(sheet.markdown() for sheet in sheets(found))


def render(reference: Path) -> str | None:
    """Return the docs page with the tables of the study that is kept, if one is, and as it is otherwise.

    None if there is no such page.
    """
    if not is_file(FILE):
        return None
    text, kept = FILE.read_text(encoding="utf-8"), reference / "backends"
    return filled(text, markdown(read(kept))) if is_file(kept / INDEX) else text


def filled(page: str, content: str) -> str:
    """Return a page with the content between its marks. Raises ValueError for a page without them."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"no {BEGIN.strip()!r} and {END.strip()!r} in {FILE.name}")
    return f"{before}{begin}\n{content}\n{end}{after}"


def promises(found: Backends) -> Sheet:
    """Return whether promises hold on a full link, and what one flow alone gets of an empty one."""
    first = next((name for name, each in found.measured.items() if each.of_first), "the first")
    rows = []
    for name in found.backends:
        each = found.measured.get(name, Measured())
        recorded = [row for row in found.rows if row.backend == name and row.part == GUARANTEE]
        if name in found.cannot:
            rows.append([name, f"cannot be run here: {found.cannot[name]}", NOTHING, NOTHING])
        elif each.throughput_bps or recorded:
            carried = _spread(each.throughput_bps, lambda value: f"{value / 1e9:.2f}")
            rows.append([name, _cell(recorded, _guarantee), carried, _spread(each.of_first, "{:.3f}".format)])
    headings = ["backend", "full link", "TCP, Gbit/s", f"of {first}"]
    return Sheet(f"promises on a full link; one flow on an empty one, {SPREAD}", headings, rows)


def packets(found: Backends) -> Sheet:
    """Return what packets cost."""
    measured = {
        name: {(one.size, one.rate): one for one in each.cost} for name, each in found.measured.items()
    }
    kinds = list(dict.fromkeys(kind for each in measured.values() for kind in each))
    return Sheet(
        f"processor time for a packet from pod to pod, ns, {SPREAD}",
        ["backend", *(f"{size} B, {rate / 1000:g} k/s" for size, rate in kinds)],
        _rows(measured, kinds, lambda one: _spread(one.ns, "{:.0f}".format) if one.ns else "invalid"),
    )


def round_trips(found: Backends) -> Sheet:
    """Return what requests take."""
    measured = {name: {one.name: one for one in each.round_trips} for name, each in found.measured.items()}
    names = list(dict.fromkeys(kind for each in measured.values() for kind in each))
    title = "a request and its answer, from when it was sent: p50 / p99"
    return Sheet(title, ["backend", *names], _rows(measured, names, _round_trip))


def firsts(found: Backends) -> Sheet:
    """Return what first exchanges take."""
    measured = {name: {one.kind: one for one in each.first} for name, each in found.measured.items()}
    return Sheet(
        "the first exchange by TCP: p50 / p95",
        ["backend", "with a node", "with a pod", "with what is known"],
        _rows(measured, ("node", "pod", "known"), _first),
    )


def moves(found: Backends) -> Sheet:
    """Return how long it takes until all others know what happened to one node."""
    events: dict[str, tuple[str, bool]] = {  # and whether packets shall arrive again, or entries be gone
        "joins": ("join", True),
        "changes": ("change", True),
        "leaves": ("leave", False),
        "daemon killed": ("kill", False),
        "started again": ("restart", True),
        "falls silent": ("silence", False),
        "is back": ("return", True),
    }
    rows = [
        [
            name,
            str(size.nodes),
            *(
                _cell((one for one in size.events if one.event == event), partial(_event, size, arrive))
                for event, arrive in events.values()
            ),
        ]
        for name, size in _sizes(found)
    ]
    title = "when one node moves: until packets to and from all others arrive, or no other has its entry"
    return Sheet(title, ["backend", "nodes", *events], rows)


def growth(found: Backends) -> Sheet:
    """Return what a cluster of so many nodes takes."""
    headings = ["backend", "nodes", "up", "entries a node", "talking with one", "daemons", "MB in all"]
    rows = [
        [
            name,
            str(size.nodes),
            duration(size.up_s),
            str(size.rest),
            str(size.talking),
            str(size.daemons or NOTHING),
            f"{size.daemon_bytes / 1e6:.0f}" if size.daemons else NOTHING,
        ]
        for name, size in _sizes(found)
    ]
    return Sheet("what nodes cost: entries are routes, neighbours and forwarding entries", headings, rows)


def duration(seconds: float) -> str:
    """Return a time as people read it."""
    if seconds >= 10:
        return f"{seconds:.1f} s"
    if seconds >= 1:
        return f"{seconds:.2f} s"
    if seconds >= 0.01:
        return f"{seconds * 1e3:.0f} ms"
    return f"{seconds * 1e3:.2g} ms"


def _rows(
    measured: Mapping[str, Mapping[Any, One]], kinds: Iterable[Any], word: Callable[[One], str]
) -> list[list[str]]:
    """Return a row for each backend of which something was measured, with a cell for each kind of it."""
    return [
        [name, *(word(each[kind]) if kind in each else NOTHING for kind in kinds)]
        for name, each in measured.items()
        if each
    ]


def _cell(ones: Iterable[One], word: Callable[[One], str]) -> str:
    return next(map(word, ones), NOTHING)


def _sizes(found: Backends) -> Iterable[tuple[str, Size]]:
    measured = [(name, found.measured[name]) for name in found.backends if name in found.measured]
    return ((name, size) for name, each in measured for size in each.sizes)


def _guarantee(row: Row) -> str:
    return row.verdict or (f"not run: {row.reason}" if row.reason else NOTHING)


def _spread(spread: Spread | None, word: Callable[[float], str]) -> str:
    if spread is None:
        return NOTHING
    return f"{word(spread.median)} ± {word((spread.most - spread.least) / 2)}"


def _first(one: First) -> str:
    failed = f", {one.failed} of {one.count} not at all" if one.failed else ""
    return f"{duration(one.p50_ns / 1e9)} / {duration(one.p95_ns / 1e9)}{failed}"


def _round_trip(one: RoundTrip) -> str:
    words = [NOTHING if took is None else duration(took) for took in (one.p50_s, one.p99_s)]
    lost = f", {one.lost} of {one.count} lost" if one.lost else ""
    return f"{' / '.join(words)}{lost}"


def _event(size: Size, arrive: bool, one: Convergence) -> str:
    if size.invalid or (arrive and one.too_late):
        return "invalid"
    seconds = one.arrive_s if arrive else one.gone_s
    return f"not in {one.given_s:.0f} s" if seconds is None else duration(seconds)
