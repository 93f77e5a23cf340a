"""The study's tables, with a row for each backend; and the page of the docs that shows some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bench.presentation.tables import Sheet
from bench.studies.backends.index import (
    GUARANTEE,
    INDEX,
    Backends,
    Convergence,
    First,
    Measured,
    PacketCost,
    RoundTrip,
    Row,
    Size,
    Spread,
    read,
)
from testbed.resources import HOME
from testbed.scenario.texts import is_file

FILE = HOME / "docs" / "explanation" / "backends-measured.md"
BEGIN = "<!-- The tables of reports/reference/backends, by ./invokew figures --all -->\n"
END = "<!-- The end of these tables -->\n"
NOTHING = "–"
SPREAD = "median ± half of the spread"


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
    recorded = {row.backend for row in found.rows if row.part == GUARANTEE}
    headings = ["backend", "full link", "TCP, Gbit/s", f"of {first}"]
    rows = [
        [name, f"cannot be run here: {found.cannot[name]}", NOTHING, NOTHING]
        if name in found.cannot
        else [
            name,
            _guarantee(name, found.rows),
            _spread(each.throughput_bps, lambda value: f"{value / 1e9:.2f}"),
            _spread(each.of_first, lambda value: f"{value:.3f}"),
        ]
        for name in found.backends
        for each in [found.measured.get(name, Measured())]
        if name in found.cannot or each.throughput_bps or name in recorded
    ]
    return Sheet(f"promises on a full link; one flow on an empty one, {SPREAD}", headings, rows)


def packets(found: Backends) -> Sheet:
    """Return what packets cost."""
    kinds = list(dict.fromkeys((one.size, one.rate) for each in found.measured.values() for one in each.cost))
    headings = ["backend", *(f"{size} B, {rate / 1000:g} k/s" for size, rate in kinds)]
    rows = [
        [name, *(_cost(each.cost, kind) for kind in kinds)]
        for name, each in found.measured.items()
        if each.cost
    ]
    return Sheet(f"processor time for a packet from pod to pod, ns, {SPREAD}", headings, rows)


def round_trips(found: Backends) -> Sheet:
    """Return what requests take."""
    names = list(dict.fromkeys(one.name for each in found.measured.values() for one in each.round_trips))
    rows = [
        [name, *(_round_trip(each.round_trips, kind) for kind in names)]
        for name, each in found.measured.items()
        if each.round_trips
    ]
    return Sheet("a request and its answer, from when it was sent: p50 / p99", ["backend", *names], rows)


def firsts(found: Backends) -> Sheet:
    """Return what first exchanges take."""
    headings = ["backend", "with a node", "with a pod", "with what is known"]
    rows = [
        [name, *(_first(each.first, kind) for kind in ("node", "pod", "known"))]
        for name, each in found.measured.items()
        if each.first
    ]
    return Sheet("the first exchange by TCP: p50 / p95", headings, rows)


def moves(found: Backends) -> Sheet:
    """Return how long it takes until all others know what happened to one node."""
    events: Sequence[tuple[str, str, Callable[[Convergence], float | None]]] = (
        ("joins", "join", _arrive),
        ("changes", "change", _arrive),
        ("leaves", "leave", _gone),
        ("daemon killed", "kill", _gone),
        ("started again", "restart", _arrive),
        ("falls silent", "silence", _gone),
        ("is back", "return", _arrive),
    )
    headings = ["backend", "nodes", *(heading for heading, _, _ in events)]
    rows = [
        [name, str(size.nodes), *(_event(size, event, what) for _, event, what in events)]
        for name, size in _sizes(found)
    ]
    title = "when one node moves: until packets to and from all others arrive, or no other has its entry"
    return Sheet(title, headings, rows)


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


def _sizes(found: Backends) -> Iterable[tuple[str, Size]]:
    return ((name, size) for name in found.backends if name in found.measured
            for size in found.measured[name].sizes)  # fmt: skip


def _guarantee(name: str, rows: Sequence[Row]) -> str:
    row = next((row for row in rows if row.backend == name and row.part == GUARANTEE), None)
    if row is None:
        return NOTHING
    return row.verdict or f"not run: {row.reason}" if row.reason or row.verdict else NOTHING


def _spread(spread: Spread | None, word: Callable[[float], str]) -> str:
    if spread is None:
        return NOTHING
    return f"{word(spread.median)} ± {word((spread.most - spread.least) / 2)}"


def _cost(costs: Sequence[PacketCost], kind: tuple[int, int]) -> str:
    one = next((one for one in costs if (one.size, one.rate) == kind), None)
    if one is None:
        return NOTHING
    return _spread(one.ns, lambda value: f"{value:.0f}") if one.ns else "invalid"


def _first(firsts: Sequence[First], kind: str) -> str:
    one = next((one for one in firsts if one.kind == kind), None)
    if one is None:
        return NOTHING
    failed = f", {one.failed} of {one.count} not at all" if one.failed else ""
    return f"{duration(one.p50_ns / 1e9)} / {duration(one.p95_ns / 1e9)}{failed}"


def _round_trip(found: Sequence[RoundTrip], name: str) -> str:
    one = next((one for one in found if one.name == name), None)
    if one is None:
        return NOTHING
    words = [NOTHING if took is None else duration(took) for took in (one.p50_s, one.p99_s)]
    lost = f", {one.lost} of {one.count} lost" if one.lost else ""
    return f"{' / '.join(words)}{lost}"


def _event(size: Size, event: str, what: Callable[[Convergence], float | None]) -> str:
    one = next((one for one in size.events if one.event == event), None)
    if one is None:
        return NOTHING
    seconds = what(one)
    if size.invalid or (what is _arrive and one.too_late):
        return "invalid"
    return f"not in {one.given_s:.0f} s" if seconds is None else duration(seconds)


def _arrive(one: Convergence) -> float | None:
    return one.arrive_s


def _gone(one: Convergence) -> float | None:
    return one.gone_s
