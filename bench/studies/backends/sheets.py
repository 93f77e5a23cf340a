"""The study's tables as words: a title, headings, and a row for each backend; whoever shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bench.studies.backends.index import Backends, Convergence, First, Measured, PacketCost, Row, Size, Spread

NOTHING = "–"


@dataclass(frozen=True)
class Sheet:
    """One table."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


def sheets(found: Backends) -> list[Sheet]:
    """Return what is there to be shown."""
    return [sheet for sheet in (packets(found), moves(found), growth(found)) if sheet.rows]


def packets(found: Backends) -> Sheet:
    """Return what packets cost: throughput, processor time, first exchanges, and whether promises hold."""
    kinds = list(dict.fromkeys((one.size, one.rate) for each in found.measured.values() for one in each.cost))
    firsts = list(dict.fromkeys(one.with_ for each in found.measured.values() for one in each.first))
    first = next((name for name, each in found.measured.items() if each.of_first), "")
    headings = ["backend", "full link", "TCP, Gbit/s", f"of {first}" if first else "share"]
    headings += [f"ns a packet, {size} B at {rate / 1000:g} k/s" for size, rate in kinds]
    headings += [f"first with {'what is known' if kind == 'known' else 'a ' + kind}" for kind in firsts]
    rows = []
    for name in found.backends:
        each = found.measured.get(name, Measured())
        if name not in found.cannot and not (each.throughput_bps or each.cost or each.first):
            continue
        cells = [
            _guarantee(name, found.rows),
            _spread(each.throughput_bps, lambda value: f"{value / 1e9:.2f}"),
            _spread(each.of_first, lambda value: f"{value:.3f}"),
            *(_cost(each.cost, kind) for kind in kinds),
            *(_first(each.first, kind) for kind in firsts),
        ]
        rows.append([name, *_or_reason(found, name, cells)])
    return Sheet("what packets cost: median ± half of the spread; first exchanges: p50 / p95", headings, rows)


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


def _or_reason(found: Backends, name: str, cells: Sequence[str]) -> Sequence[str]:
    """Return cells, or, of a backend that cannot be run, why that is so instead of numbers."""
    if name not in found.cannot:
        return cells
    return [f"cannot be run here: {found.cannot[name]}", *(NOTHING for _ in cells[1:])]


def _guarantee(name: str, rows: Sequence[Row]) -> str:
    row = next((row for row in rows if row.backend == name), None)
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
    one = next((one for one in firsts if one.with_ == kind), None)
    if one is None:
        return NOTHING
    failed = f", {one.failed} of {one.count} not at all" if one.failed else ""
    return f"{duration(one.p50_ns / 1e9)} / {duration(one.p95_ns / 1e9)}{failed}"


def _event(size: Size, event: str, what: Callable[[Convergence], float | None]) -> str:
    one = next((one for one in size.events if one.event == event), None)
    if one is None:
        return NOTHING
    if size.invalid:
        return "invalid"
    seconds = what(one)
    return f"not in {one.given_s:.0f} s" if seconds is None else duration(seconds)


def _arrive(one: Convergence) -> float | None:
    return one.arrive_s


def _gone(one: Convergence) -> float | None:
    return one.gone_s
