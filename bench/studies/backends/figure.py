"""``figures/backends``: what packets cost beside each other, and convergence against the number of nodes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from bench.presentation.figures import style
from bench.presentation.figures.head import EDGE, Key, broken, extent
from bench.presentation.figures.sheet import SMALL, Sheet
from bench.presentation.figures.style import Look, look
from bench.studies.backends.index import Backends, PacketCost, Size
from bench.studies.grid import Grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Looks = dict[str, Look]

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
    looks = {name: look(place) for place, name in enumerate(names)}
    what: dict[str, Any] = {"found": found, "looks": looks, "sheet": sheet}
    entries_of = partial(_against_nodes, heading="entries of a node", value=lambda size: size.rest)
    panels: list[Callable[[Axes], None]] = [
        *(partial(panel, **what) for panel in (_throughput, _cost, entries_of)),
        *(
            partial(_events, heading=f"{heading}, s", value=partial(_arrive, event), **what)
            for heading, event in EVENTS
        ),
    ]
    grid = Grid(sheet, COLUMNS, HEIGHT, TITLES, gap=AXIS, least=LEAST)
    entries: style.Entries = [
        (name, style.line(color=colour, marker=marker, markersize=3, linewidth=1.0))
        for name, (colour, marker) in looks.items()
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


def _decades(axes: Axes) -> None:
    """Make the scale logarithmic, from one power of ten to another, with the numbers written out."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axes.set_yscale("log")
    low, high = (math.log10(limit) for limit in axes.get_ylim())
    axes.set_ylim(10 ** math.floor(low), 10 ** math.ceil(high))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _throughput(axes: Axes, found: Backends, looks: Looks, sheet: Sheet) -> None:
    _heading(axes, "one TCP flow, Gbit/s", sheet)
    for place, name in enumerate(looks):
        if carried := found.measured[name].throughput_bps:
            _mark(axes, place, (carried.median, carried.least, carried.most), 1e-9, looks[name], sheet)
    axes.set_xticks([])
    axes.margins(0.15)
    axes.set_ylim(bottom=0)


def _cost(axes: Axes, found: Backends, looks: Looks, sheet: Sheet) -> None:
    _heading(axes, "processor time a packet, µs", sheet)
    kinds = list(dict.fromkeys((one.size, one.rate) for name in looks for one in found.measured[name].cost))
    for group, kind in enumerate(kinds):
        for place, name in enumerate(looks):
            cost = _of(found.measured[name].cost, kind)
            if cost and cost.ns:
                where = group * (len(looks) + 1) + place
                _mark(axes, where, (cost.ns.median, cost.ns.least, cost.ns.most), 1e-3, looks[name], sheet)
    middles = [group * (len(looks) + 1) + (len(looks) - 1) / 2 for group in range(len(kinds))]
    names = [f"{size} B\n{rate / 1000:g} k/s" for size, rate in kinds]
    axes.set_xticks(middles, names, fontsize=sheet.points(SMALL))
    axes.margins(0.1)
    axes.set_ylim(bottom=0)


def _events(
    axes: Axes,
    found: Backends,
    looks: Looks,
    heading: str,
    value: Callable[[Size], float | None],
    sheet: Sheet,
) -> None:
    _against_nodes(axes, found, looks, heading, value, sheet)
    _decades(axes)


def _against_nodes(
    axes: Axes,
    found: Backends,
    looks: Looks,
    heading: str,
    value: Callable[[Size], float | None],
    sheet: Sheet,
) -> None:
    _heading(axes, heading, sheet)
    for name, (colour, marker) in looks.items():
        points = [
            (size.nodes, seen) for size in found.measured[name].sizes if (seen := value(size)) is not None
        ]
        if points:
            axes.plot(
                *zip(*points, strict=True),
                color=colour,
                marker=marker,
                markersize=sheet.points(3),
                linewidth=sheet.points(1),
            )
    axes.set_xticks(sorted({size.nodes for each in found.measured.values() for size in each.sizes}))
    axes.set_xlabel("nodes")


def _mark(
    axes: Axes, where: float, values: tuple[float, float, float], unit: float, look: Look, sheet: Sheet
) -> None:
    median, least, most = (value * unit for value in values)
    axes.errorbar(
        [where],
        [median],
        yerr=[[median - least], [most - median]],
        color=look.colour,
        marker=look.marker,
        markersize=sheet.points(3),
        linewidth=sheet.points(0.8),
        capsize=sheet.points(1.5),
    )


def _break(axes: Axes, room: float, sheet: Sheet) -> None:
    """Break a panel's heading where it has no room, in units."""
    text, space = axes.get_title(loc="left"), extent(" ", SMALL)
    rows = broken(text.split(), lambda word: extent(word, SMALL), space, room)
    axes.set_title("\n".join(map(" ".join, rows)), fontsize=sheet.points(SMALL), loc="left")


def _heading(axes: Axes, text: str, sheet: Sheet) -> None:
    axes.set_title(text, fontsize=sheet.points(SMALL), loc="left")


def _of(costs: list[PacketCost], kind: tuple[int, int]) -> PacketCost | None:
    return next((one for one in costs if (one.size, one.rate) == kind), None)


def _arrive(event: str, size: Size) -> float | None:
    told = (one for one in size.events if one.event == event and one.arrive_s and not one.too_late)
    return next((one.arrive_s for one in told), None)
