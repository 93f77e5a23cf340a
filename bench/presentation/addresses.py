"""What the nodes of a cluster have of its ranges of pod addresses: tables, a picture, and what is to come.

All are functions of an inventory, of a scenario or of a cluster that exists. Of a large cluster people are
shown what they look for, who waits and whose block is full, and programs everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from bench.presentation.figures.style import CLUSTERS, OUTSIDE
from bench.presentation.figures.style import DISTURBANCE as OTHERS
from bench.presentation.ranges import NO_CONFIG, Cell, Drawing, strips, totals
from bench.presentation.report import rendered
from bench.presentation.tables import borderless
from bench.presentation.wording import verbatim
from edge.addresses.inventory import Inventory, Kind, Row, savings
from testbed.scenario.units import format_share

NODES = 40  # a cluster with more is shown by those that
FULLEST = 20  # have the least room
NAMED = 3  # of the nodes that wait for one reason
KINDS = 8  # of nodes, those of which the fewest fit
# Pixels of the picture: of a row, of what is around it, of a line of text and about a character of it.
WIDTH, HEIGHT, GAP, LINE, CHARACTER = 768, 24, 12, 18, 7


def configs(inventory: Inventory) -> Table:
    """Return a table of the ranges: for whom they are, how many have a block of each, and use how much."""
    table = borderless("", 2, ("config", "nodes with", "range"), ("block", "given", "free", "used"))
    rows = _by_config(inventory)
    for name, config in inventory.allocator.configs.items():
        nodes, free = rows.get(name, ()), _free(inventory, name)
        for number, one in enumerate(config.ranges):
            whose = "no node" if config.selector.matches_nothing else str(config.selector) or "any label"
            said = (name, whose, str(one.network))
            counts = (f"{len(nodes):,}", f"{free:,}", _used(nodes))
            table.add_row(
                *map(verbatim, said if number == 0 else ("", "", said[2])),
                f"/{one.mask}",
                *(counts if number == 0 else ("", "", "")),
            )
    if kept := rows.get("", ()):
        table.add_row(NO_CONFIG, "", "", "", f"{len(kept):,}", "", _used(kept))
    return table


def _free(inventory: Inventory, config: str) -> int:
    """Return how many more nodes get a block of a config, which may give nothing."""
    allocator = inventory.allocator
    return 0 if allocator.refusal(allocator.configs[config]) else allocator.free(config)


def headline(inventory: Inventory) -> str:
    """Say how many nodes a cluster has, and how many of them have addresses."""
    waits = len(inventory.waiting)
    said = f"{waits:,} without a block" if waits else "all have a block"
    return f"cluster {inventory.cluster}: {_nodes(len(inventory.nodes))}, {said}"


def _nodes(count: int, word: str = "node") -> str:
    return f"{count:,} {word}{'s' * (count != 1)}"


def _by_config(inventory: Inventory) -> dict[str, list[Row]]:
    """Return the nodes that have blocks, by their config's name."""
    found: dict[str, list[Row]] = {}
    for row in inventory.rows():
        if row.blocks:
            found.setdefault(row.config, []).append(row)
    return found


def _used(rows: Sequence[Row]) -> str:
    """Return which share of their blocks' addresses pods have; a dash if there are none."""
    room = sum(row.room for row in rows)
    return format_share(sum(row.pods for row in rows) / room) if room else "-"


def nodes(rows: Sequence[Row]) -> Table:
    """Return a table of nodes that have blocks."""
    table = borderless("", 2, ("node", "config", "block"), ("pods", "room", "used"))
    for row in rows:
        said = (row.node, row.config or NO_CONFIG, " ".join(map(str, row.blocks)))
        table.add_row(*map(verbatim, said), f"{row.pods:,}", f"{row.room:,}", _used([row]))
    return table


def fullest(rows: Sequence[Row]) -> list[Row]:
    """Return the nodes whose blocks have the smallest share free, of those with pods."""
    used = [row for row in rows if row.pods]
    return sorted(used, key=lambda row: (-_share(row), row.node))[:FULLEST]


def _share(row: Row) -> float:
    return row.pods / row.room if row.room else 1.0


def waiting(inventory: Inventory) -> Iterator[str]:
    """Yield a line for each reason for which nodes wait, the most frequent first."""
    for why, count in Counter(inventory.waiting.values()).most_common():
        names = [node for node, reason in inventory.waiting.items() if reason == why]
        more = f" and {count - NAMED:,} more" if count > NAMED else ""
        yield f"waiting: {', '.join(names[:NAMED])}{more}: {why}"


def coming(inventory: Inventory) -> Iterator[str]:
    """Yield what is to come: how many more nodes of each kind fit, and which config runs out first.

    Nothing, where no config says it: then somebody else gives blocks, and knows.
    """
    if not inventory.allocator.configs:
        return
    found = sorted(inventory.kinds, key=lambda kind: kind.fits)
    for kind in found[:KINDS]:
        yield f"room for {_nodes(kind.fits, 'more node')} {_like(kind)}"
    if len(found) > KINDS:
        yield f"and {len(found) - KINDS:,} kinds of nodes of which more fit (--json has them)"
    if out := [name for name in inventory.allocator.configs if not _free(inventory, name)]:
        yield f"without a free block: {', '.join(out)}"
    first = inventory.first_out
    if first and first.config:
        yield (
            f"first to run out if nodes come as they are there: {first.config}, "
            f"after {_nodes(first.nodes, 'more node')}"
        )
    elif first:
        yield f"nothing runs out before {first.nodes:,} more nodes, if they come as they are there"


def _like(kind: Kind) -> str:
    """Say which nodes are of a kind: like one that is there, or with the labels that a config asks for."""
    of = ", then ".join(kind.configs) or "no config is for them"
    if kind.nodes:
        return f"like {kind.nodes[0]} ({of})"
    labels = [f"{key}={value}" for key, value in sorted(kind.example.labels.items())]
    return f"{'with ' + ','.join(labels) if labels else 'called ' + kind.example.name} ({of})"


def saved(inventory: Inventory) -> Iterator[str]:
    """Yield, for each family, what blocks of several sizes save."""
    for one in savings(inventory):
        if one.given < one.alike:
            yield (
                f"saved: {format_share(one.share)} of the IPv{one.version} addresses that "
                f"{_nodes(one.nodes)} would have with a /{one.mask} each, "
                f"{one.given:,} instead of {one.alike:,}"
            )


class Shape(NamedTuple):
    """A part of a range, or several alike side by side, where it is drawn; pixels."""

    x: int
    y: int
    width: int
    colour: str
    share: float  # of it that is not free
    title: str  # what a pointer on it is told


class Line(NamedTuple):
    """A line of text where it is drawn; pixels."""

    x: int
    y: int
    text: str
    bold: bool = False


SVG_KEY = "coloured: given; grey: taken by others; white: free"


def svg(inventories: Sequence[Inventory]) -> str:
    """Return the ranges of clusters as a picture: each a bar in rows, coloured where it is not free."""
    shapes: list[Shape] = []
    lines: list[Line] = []
    y = GAP
    for inventory in inventories:
        y += LINE
        lines.append(Line(GAP, y, headline(inventory), bold=True))
        names = list(inventory.allocator.configs)
        for strip in strips(inventory):
            y += LINE + GAP
            lines.append(Line(GAP, y, strip.headline()))
            colour = CLUSTERS[names.index(strip.config) % len(CLUSTERS)] if strip.config else OUTSIDE
            for row in strip.rows():
                shapes += _shapes(row, y + GAP // 2, colour)
                y += HEIGHT + GAP // 2
                lines.append(Line(GAP + WIDTH + GAP, y - GAP + 5, row[0].first))
        for text in (SVG_KEY, *waiting(inventory), *coming(inventory), *saved(inventory)):
            y += LINE
            lines.append(Line(GAP, y + GAP, text))
        y += LINE + 2 * GAP
    widest = max(len(line.text) * CHARACTER + line.x for line in lines)
    title = "; ".join(map(headline, inventories))
    return rendered(
        "addresses.svg.j2",
        title=title,
        lines=lines,
        shapes=shapes,
        width=max(widest, WIDTH) + 2 * GAP,
        height=y,
        bar=HEIGHT,
    )


def _shapes(row: Sequence[Cell], y: int, colour: str) -> Iterator[Shape]:
    """Yield a row's parts; those side by side that are wholly free as one."""
    wide, at = WIDTH // len(row), 0
    for _, together in groupby(row, key=lambda cell: cell.first if cell.used else ""):
        cells = list(together)
        given, other, free = totals(cells)
        words = f"{cells[0].first}: {given:,} given, {other:,} taken by others, {free:,} free"
        shown = colour if given else OTHERS
        yield Shape(GAP + at * wide, y, len(cells) * wide, shown, cells[0].used, words)
        at += len(cells)


def show(console: Console, inventory: Inventory, every: bool = False) -> None:
    """Print all that people are told of a cluster; of a large one's nodes the fullest, or ``every``."""
    console.print(verbatim(headline(inventory), "bold"), soft_wrap=True)
    if inventory.allocator.configs:
        console.print(configs(inventory))
    rows = [row for row in inventory.rows() if row.blocks]
    if len(rows) > NODES and not every:
        shown = fullest(rows)
        console.print(f"\nthe {len(shown)} fullest of {_nodes(len(rows))} (--all shows each)", soft_wrap=True)
    else:
        shown = rows
        console.print()
    if shown:
        console.print(nodes(shown))
        console.print()
    if drawn := strips(inventory):
        console.print(Drawing(drawn))
        console.print()
    for line in (*waiting(inventory), *coming(inventory), *saved(inventory)):
        console.print(verbatim(line), soft_wrap=True)
    for note in inventory.notes:
        console.print(verbatim(f"note: {note}"), soft_wrap=True)


def document(inventory: Inventory) -> dict[str, Any]:
    """Return all that is known of a cluster, for programs."""
    first = inventory.first_out
    rows = _by_config(inventory)
    return {
        "cluster": inventory.cluster,
        "configs": [
            {
                "name": name,
                "selector": str(config.selector),
                "given": len(rows.get(name, ())),
                "free": _free(inventory, name),
                "ranges": [
                    {
                        "cidr": str(one.network),
                        "mask": one.mask,
                        "possible": one.possible,
                        "free": list(map(str, inventory.allocator.free_in(one))),
                    }
                    for one in config.ranges
                ],
            }
            for name, config in inventory.allocator.configs.items()
        ],
        "nodes": [
            {
                "node": row.node,
                "config": row.config or None,
                "blocks": list(map(str, row.blocks)),
                "pods": row.pods,
                "room": row.room,
                "waits": row.waits or None,
            }
            for row in inventory.rows()
        ],
        "kinds": [
            {
                "configs": list(kind.configs),
                "labels": dict(kind.example.labels),
                "nodes": list(kind.nodes),
                "fits": kind.fits,
            }
            for kind in inventory.kinds
        ],
        "runs_out_first": first._asdict() if first else None,
        "savings": [{**one._asdict(), "share": one.share} for one in savings(inventory)],
        "notes": list(inventory.notes),
    }
