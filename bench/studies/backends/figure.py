"""``figures/backends``: what packets cost beside each other, and convergence against the number of nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from bench.presentation.figures import style
from bench.presentation.figures.head import EDGE, Key, broken, extent
from bench.presentation.figures.sheet import SMALL, Sheet
from bench.presentation.figures.style import Look, look
from bench.studies.backends.index import Backends, Size
from bench.studies.grid import Grid
from bench.studies.study import Spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Units.
HEIGHT, TITLES, BELOW, BOTTOM, AXIS, LEAST = 1.3, 0.2, 0.55, 0.5, 0.45, 1.1
COLUMNS, LINE = 3, 0.14
# What is drawn against the number of nodes: heading, event, and what of it.
EVENTS = (
    ("a node joins", "join"),
    ("a node changes its address", "change"),
    ("its daemon is started again", "restart"),
)


def render(found: Backends, sheet: Sheet) -> dict[str, bytes]:
    """Return the figure by format."""
    return style.files(lambda: draw(found, sheet), sheet)


def draw(found: Backends, sheet: Sheet) -> Figure:
    """Return the figure; ``style.files`` makes files of it."""
    names = [name for name in found.backends if _is_drawn(found, name)]
    draws = _Panels(found, {name: look(place) for place, name in enumerate(names)}, sheet)
    panels: list[Callable[[Axes], None]] = [
        draws.throughput,
        draws.cost,
        partial(draws.against_nodes, "entries of a node", lambda size: size.rest),
        *(partial(draws.event, f"{heading}, s", event) for heading, event in EVENTS),
    ]
    grid = Grid(sheet, COLUMNS, HEIGHT, TITLES, gap=AXIS, least=LEAST)
    entries: style.Entries = [
        (name, style.line(color=colour, marker=marker, markersize=3, linewidth=1.0))
        for name, (colour, marker) in draws.looks.items()
    ]
    key = Key(sheet, entries, EDGE)
    top = EDGE + key.height + (0.1 if grid.columns == COLUMNS else 0.1 + LINE)  # headings may have two lines
    rows = grid.rows(len(panels))
    figure = sheet.figure(top + rows * (TITLES + HEIGHT) + (rows - 1) * BELOW + BOTTOM)
    for panel, axes in zip(panels, grid.panels(figure, len(panels), top, BELOW), strict=True):
        panel(axes)
        _break(axes, grid.width, sheet)
    key.draw(figure, EDGE)
    return figure


def _is_drawn(found: Backends, name: str) -> bool:
    measured = found.measured.get(name)
    return measured is not None and bool(measured.throughput_bps or measured.cost or measured.sizes)


@dataclass(frozen=True)
class _Panels:
    """What is drawn into each, of the backends that have a look."""

    found: Backends
    looks: Mapping[str, Look]
    sheet: Sheet

    def throughput(self, axes: Axes) -> None:
        """Draw what one flow carries."""
        axes.set_title("one TCP flow, Gbit/s", loc="left")
        for place, (name, one) in enumerate(self.looks.items()):
            if carried := self.found.measured[name].throughput_bps:
                self._mark(axes, place, carried, 1e-9, one)
        axes.set_xticks([])
        axes.margins(0.15)
        axes.set_ylim(bottom=0)

    def cost(self, axes: Axes) -> None:
        """Draw what packets cost, of one size after another."""
        axes.set_title("processor time a packet, µs", loc="left")
        costs = [
            {(one.size, one.rate): one.ns for one in self.found.measured[name].cost} for name in self.looks
        ]
        kinds = list(dict.fromkeys(kind for each in costs for kind in each))
        for group, kind in enumerate(kinds):
            for place, (each, one) in enumerate(zip(costs, self.looks.values(), strict=True)):
                if ns := each.get(kind):
                    self._mark(axes, group * (len(self.looks) + 1) + place, ns, 1e-3, one)
        middles = [group * (len(self.looks) + 1) + (len(self.looks) - 1) / 2 for group in range(len(kinds))]
        names = [f"{size} B\n{rate / 1000:g} k/s" for size, rate in kinds]
        axes.set_xticks(middles, names, fontsize=self.sheet.points(SMALL))
        axes.margins(0.1)
        axes.set_ylim(bottom=0)

    def event(self, heading: str, event: str, axes: Axes) -> None:
        """Draw how long it takes until packets arrive again after an event."""
        from matplotlib.ticker import FuncFormatter, NullFormatter

        self.against_nodes(heading, partial(_arrive, event), axes)
        # From one power of ten to another, with the numbers written out.
        axes.set_yscale("log")
        low, high = (math.log10(limit) for limit in axes.get_ylim())
        axes.set_ylim(10 ** math.floor(low), 10 ** math.ceil(high))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())

    def against_nodes(self, heading: str, value: Callable[[Size], float | None], axes: Axes) -> None:
        """Draw something of a cluster against the number of its nodes."""
        axes.set_title(heading, loc="left")
        for name, (colour, marker) in self.looks.items():
            sizes = self.found.measured[name].sizes
            points = [(size.nodes, seen) for size in sizes if (seen := value(size)) is not None]
            if points:
                axes.plot(
                    *zip(*points, strict=True),
                    color=colour,
                    marker=marker,
                    markersize=self.sheet.points(3),
                    linewidth=self.sheet.points(1),
                )
        measured = self.found.measured.values()
        axes.set_xticks(sorted({size.nodes for each in measured for size in each.sizes}))
        axes.set_xlabel("nodes")

    def _mark(self, axes: Axes, where: float, spread: Spread, unit: float, look: Look) -> None:
        median, least, most = (value * unit for value in (spread.median, spread.least, spread.most))
        axes.errorbar(
            [where],
            [median],
            yerr=[[median - least], [most - median]],
            color=look.colour,
            marker=look.marker,
            markersize=self.sheet.points(3),
            linewidth=self.sheet.points(0.8),
            capsize=self.sheet.points(1.5),
        )


def _break(axes: Axes, room: float, sheet: Sheet) -> None:
    """Break a panel's heading where it has no room, in units."""
    text, space = axes.get_title(loc="left"), extent(" ", SMALL)
    rows = broken(text.split(), lambda word: extent(word, SMALL), space, room)
    axes.set_title("\n".join(map(" ".join, rows)), fontsize=sheet.points(SMALL), loc="left")


def _arrive(event: str, size: Size) -> float | None:
    told = (one for one in size.events if one.event == event and one.arrive_s and not one.too_late)
    return next((one.arrive_s for one in told), None)
