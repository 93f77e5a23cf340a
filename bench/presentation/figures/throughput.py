"""``figures/throughput``: who got how much, when (the paper's figs. 13 and 14).

Above: the guaranteed flows, each with its guarantee and the goodput expected of it. Below, on a scale of its
own, what has no guarantee - a disturbance of 12 Gbit/s would flatten the flows beside it. Where there is room
names stand beside the lines, otherwise in the key.

The bytes depend on the recording, the sheet and matplotlib's version alone: not on the user's style, on the
time or on the machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bench.analysis.excuses import Moments
from bench.analysis.summary import FlowSummary
from bench.presentation.figures import labels, style
from bench.presentation.figures.head import EDGE, Key, above
from bench.presentation.figures.labels import Label, promise, shortened
from bench.presentation.figures.series import Series, ceiling, cut, series
from bench.presentation.figures.sheet import SMALL, Sheet, Subject
from bench.presentation.figures.style import INK, MUTED, Look, bands, files, line, looks, shade
from testbed.scenario import Scenario
from testbed.scenario.units import Unit, format_bps, format_number, unit_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bench.presentation.figures.series import Flags
    from bench.presentation.figures.style import Entries, Entry


TITLE = "Throughput of every flow against time, with guarantees, expected goodput and disturbances"

MARKERS_ON_A_LINE = 9

# Units.
GAP, LEFT, BOTTOM = 0.14, 0.55, 0.42
WIDE = 5.5  # from this room on, names are at the right of the panels
LABELS, RIGHT = 1.75, 0.12  # right of the panels, with names and without
# Heights of what has guarantees, and of the rest.
ON_WIDE, ON_NARROW = (2.8, 1.1), (1.5, 0.7)


def caption(scenario: Scenario) -> str:
    """Return what stands below the figure."""
    interval_s = format_number(scenario.measurement.interval)
    text = (
        f"Payload that arrived, by the receivers' records of {interval_s} s. "
        "Guaranteed flows are judged against the expected goodput (dashed), which is what the guarantee "
        "(dotted) leaves after headers."
    )
    if scenario.measurement.repetitions > 1:
        text += " Lines are medians of the repetitions, bands reach from the lowest to the highest."
    return text


def render(subject: Subject, sheet: Sheet) -> dict[str, bytes]:
    """Return the figure by format."""
    return files(lambda: draw(subject, sheet), sheet)


def draw(subject: Subject, sheet: Sheet) -> Figure:
    """Return the figure; ``style.files`` makes files of it."""
    scenario = subject.scenario
    lines, looked = series(subject.samples, scenario), looks(scenario)
    panels = _panels(subject.summary.flows)
    found, wide = style.moments(subject.record), sheet.room >= WIDE
    head = above(subject, Key(sheet, _entries(subject, looked, found, wide), LEFT if wide else EDGE))
    rest = head.height + GAP * (len(panels) - 1) + BOTTOM
    heights = _heights(panels, sheet, rest)
    inner = sheet.room - LEFT - (LABELS if wide else RIGHT)
    figure = sheet.figure(rest + sum(heights))
    top = head.height
    for index, (flows, height) in enumerate(zip(panels, heights, strict=True)):
        axes = sheet.panel(figure, LEFT, top, inner, height)
        top += height + GAP
        known = [lines[flow.name] for flow in flows if flow.name in lines]
        most = ceiling(known, [flow.guarantee_bps or 0.0 for flow in flows])
        unit = unit_for([most])
        _frame(axes, scenario, (most or unit.bits_per_second) / unit.bits_per_second, unit, index == 0)
        axes.yaxis.set_label_coords(-0.7 * LEFT / inner, 0.5)  # the same in every panel
        bands(axes, scenario)
        style.mark(axes, found)
        for flow in flows:
            _flow(axes, flow, lines.get(flow.name), looked[flow.name], unit, most, scenario, sheet)
        if wide:
            named = [_label(flow, lines.get(flow.name), looked, axes, unit, height) for flow in flows]
            labels.draw(axes, named, inner, height, sheet)
        if index < len(panels) - 1:
            axes.tick_params(labelbottom=False)
        else:
            axes.set_xlabel("time in s")
    head.draw(figure)
    return figure


def _panels(flows: Sequence[FlowSummary]) -> list[list[FlowSummary]]:
    """Return the flows of each panel; there is at least one."""
    upper = [flow for flow in flows if flow.role == "guaranteed"]
    lower = [flow for flow in flows if flow.role != "guaranteed"]
    return [panel for panel in (upper, lower) if panel] or [[]]


def _heights(panels: Sequence[Sequence[FlowSummary]], sheet: Sheet, rest: float) -> list[float]:
    """Return the height of each panel, which names need, where they are beside it."""
    wide = sheet.room >= WIDE
    heights = sheet.fitted((ON_WIDE if wide else ON_NARROW)[: len(panels)], rest)
    needed = [len(flows) * labels.gap(len(flows)) if wide else 0.0 for flows in panels]
    return [max(pair) for pair in zip(heights, needed, strict=True)]


def _frame(axes: Axes, scenario: Scenario, most: float, unit: Unit, first: bool) -> None:
    axes.set_xlim(0, max(traffic.end for traffic in scenario.traffic))
    axes.set_ylim(0, most * 1.08)
    axes.set_ylabel(f"throughput in {unit.name}" if first else unit.name)
    axes.locator_params(axis="y", nbins="auto", steps=[1, 2, 2.5, 5, 10])


def _flow(
    axes: Axes,
    flow: FlowSummary,
    line: Series | None,
    look: Look,
    unit: Unit,
    most: float,
    scenario: Scenario,
    sheet: Sheet,
) -> None:
    scale = unit.bits_per_second
    traffic = next(traffic for traffic in scenario.traffic if traffic.label == flow.name)
    for rate, dashes in ((flow.guarantee_bps, ":"), (flow.expected_goodput_bps, "--")):
        if rate is not None:
            axes.plot(
                [traffic.start, traffic.end],
                [rate / scale] * 2,
                dashes,
                color=INK,
                linewidth=sheet.points(0.7),
                zorder=2,  # what is measured is drawn over it
            )
    if line is None:
        return
    if scenario.measurement.repetitions > 1:
        low, high = (cut(rates, most)[0] / scale for rates in (line.low, line.high))
        axes.fill_between(line.seconds, low, high, color=look.colour, alpha=0.2, linewidth=0)
    every = max(1, len(line.seconds) // MARKERS_ON_A_LINE)
    rates, above = cut(line.median, most)
    axes.plot(
        line.seconds,
        rates / scale,
        color=look.colour,
        marker=look.marker,
        markersize=sheet.points(3.5),
        markevery=(every // 2, every),
        markeredgewidth=0,
        zorder=3,
    )
    if above.any():
        _beyond(axes, line, above, look, most / scale, sheet)


def _beyond(axes: Axes, line: Series, above: Flags, look: Look, edge: float, sheet: Sheet) -> None:
    """Say at the upper edge how high a line is that would leave there."""
    where, highest = line.seconds[above], float(line.median[above].max())
    size = sheet.points(4)
    axes.plot(
        where, [edge] * len(where), "^", color=look.colour, markersize=size, markeredgewidth=0, zorder=6
    )
    axes.annotate(
        f"{format_bps(highest)}",
        (float(where[-1]), edge),
        xytext=(size, 0),
        textcoords="offset points",
        va="center",
        fontsize=sheet.points(SMALL),
        color=look.colour,
        zorder=6,
    )


def _label(
    flow: FlowSummary, line: Series | None, looked: dict[str, Look], axes: Axes, unit: Unit, height: float
) -> Label:
    """Return a flow's label, beside what is expected of it or else beside what it got."""
    rate = flow.expected_goodput_bps or (line.level if line else 0.0)
    share = min(rate / unit.bits_per_second / axes.get_ylim()[1], 1.0)
    return Label(flow.name, promise(flow.guarantee_bps), share * height, looked[flow.name])


def _entries(subject: Subject, looked: dict[str, Look], found: Moments, wide: bool) -> Entries:
    """What the kinds of lines mean; where names have no other place, each line, too."""
    scenario, flows = subject.scenario, subject.summary.flows
    entries: Entries = [] if wide else list(_named(flows, looked))
    count = scenario.measurement.repetitions
    if wide or count > 1:
        several = f"median and range of {count} repetitions"
        received = "received" if count == 1 else f"received: {several}" if wide else several
        entries += [(received, line(color=MUTED, marker="o", markersize=3.5, markeredgewidth=0))]
    if any(flow.role == "guaranteed" for flow in flows):
        entries += [("expected goodput", line(linestyle="--", linewidth=0.7))]
        entries += [("guarantee", line(linestyle=":", linewidth=0.7))]
    if scenario.disturbances:
        entries += [("disturbed", shade())]
    return entries + style.of_moments(found)


def _named(flows: Sequence[FlowSummary], looked: dict[str, Look]) -> Iterator[Entry]:
    for flow in flows:
        colour, marker = looked[flow.name]
        rate = "" if flow.guarantee_bps is None else f": {format_bps(flow.guarantee_bps)}"
        handle = line(color=colour, marker=marker, markersize=3.5, markeredgewidth=0)
        yield f"{shortened(flow.name)}{rate}", handle
