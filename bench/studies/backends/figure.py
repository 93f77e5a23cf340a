"""``figures/backends``: what packets cost beside each other, and convergence against the number of nodes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from bench.presentation.figures import style
from bench.presentation.figures.style import COLOURS
from bench.studies.backends.convergence import too_late
from bench.studies.backends.index import Backends, PacketCost, Size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Inches.
WIDTH, HEIGHT = 7.2, 4.6
MARKERS = ("o", "s", "^", "v", "D", "P", "X")
# What is drawn against the number of nodes: heading, event, and what of it.
EVENTS = (
    ("a node joins", "join"),
    ("a node changes its address", "change"),
    ("its daemon is started again", "restart"),
)


def render(found: Backends) -> dict[str, bytes]:
    """Return the figure by format."""
    return style.files(lambda: _draw(found))


def _draw(found: Backends) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, HEIGHT))
    names = [name for name in found.backends if _is_drawn(found, name)]
    looks = {name: _look(place) for place, name in enumerate(names)}
    panels = figure.subplots(2, 3, gridspec_kw={"hspace": 0.62, "wspace": 0.42})
    figure.subplots_adjust(left=0.08, right=0.99, top=0.86, bottom=0.1)
    _throughput(panels[0][0], found, names, looks)
    _cost(panels[0][1], found, names, looks)
    _against_nodes(panels[0][2], found, looks, "entries of a node", lambda size: size.rest)
    for axes, (heading, event) in zip(panels[1], EVENTS, strict=True):
        _against_nodes(axes, found, looks, f"{heading}, s", partial(_arrive, event))
        _decades(axes)
    entries: style.Entries = {
        name: style.line(color=colour, marker=marker, markersize=3, linewidth=1.0)
        for name, (colour, marker) in looks.items()
    }
    if entries:
        style.small_key(figure, entries, columns=6)
    return figure


def _is_drawn(found: Backends, name: str) -> bool:
    measured = found.measured.get(name)
    return measured is not None and bool(measured.throughput_bps or measured.cost or measured.sizes)


def _look(place: int) -> tuple[str, str]:
    """Return colour and marker: when colours begin again, each has another marker."""
    again = place // len(COLOURS)
    return COLOURS[place % len(COLOURS)], MARKERS[(place + again) % len(MARKERS)]


def _decades(axes: Axes) -> None:
    """Make the scale logarithmic, from one power of ten to another, with the numbers written out."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axes.set_yscale("log")
    low, high = (math.log10(limit) for limit in axes.get_ylim())
    axes.set_ylim(10 ** math.floor(low), 10 ** math.ceil(high))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _throughput(axes: Axes, found: Backends, names: list[str], looks: dict[str, tuple[str, str]]) -> None:
    _heading(axes, "one TCP flow, Gbit/s")
    for place, name in enumerate(names):
        if carried := found.measured[name].throughput_bps:
            _mark(axes, place, (carried.median, carried.least, carried.most), 1e-9, looks[name])
    axes.set_xticks([])
    axes.margins(0.15)
    axes.set_ylim(bottom=0)


def _cost(axes: Axes, found: Backends, names: list[str], looks: dict[str, tuple[str, str]]) -> None:
    _heading(axes, "processor time a packet, µs")
    kinds = list(dict.fromkeys((one.size, one.rate) for name in names for one in found.measured[name].cost))
    for group, kind in enumerate(kinds):
        for place, name in enumerate(names):
            cost = _of(found.measured[name].cost, kind)
            if cost and cost.ns:
                where = group * (len(names) + 1) + place
                _mark(axes, where, (cost.ns.median, cost.ns.least, cost.ns.most), 1e-3, looks[name])
    middles = [group * (len(names) + 1) + (len(names) - 1) / 2 for group in range(len(kinds))]
    axes.set_xticks(middles, [f"{size} B\n{rate / 1000:g} k/s" for size, rate in kinds], fontsize=6)
    axes.margins(0.1)
    axes.set_ylim(bottom=0)


def _against_nodes(
    axes: Axes,
    found: Backends,
    looks: dict[str, tuple[str, str]],
    heading: str,
    value: Callable[[Size], float | None],
) -> None:
    _heading(axes, heading)
    for name, (colour, marker) in looks.items():
        points = [
            (size.nodes, seen) for size in found.measured[name].sizes if (seen := value(size)) is not None
        ]
        if points:
            axes.plot(*zip(*points, strict=True), color=colour, marker=marker, markersize=3, linewidth=1.0)
    axes.set_xticks(sorted({size.nodes for each in found.measured.values() for size in each.sizes}))
    axes.set_xlabel("nodes")


def _mark(
    axes: Axes, where: float, values: tuple[float, float, float], unit: float, look: tuple[str, str]
) -> None:
    median, least, most = (value * unit for value in values)
    axes.errorbar(
        [where],
        [median],
        yerr=[[median - least], [most - median]],
        color=look[0],
        marker=look[1],
        markersize=3,
        linewidth=0.8,
        capsize=1.5,
    )


def _heading(axes: Axes, text: str) -> None:
    axes.set_title(text, fontsize=7.5, loc="left", pad=3)
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.5)
    axes.set_axisbelow(True)


def _of(costs: list[PacketCost], kind: tuple[int, int]) -> PacketCost | None:
    return next((one for one in costs if (one.size, one.rate) == kind), None)


def _arrive(event: str, size: Size) -> float | None:
    told = (one for one in size.events if one.event == event and one.arrive_s and not too_late(one))
    return next((one.arrive_s for one in told), None)
