"""``figures/throughput``: who got how much, when (the paper's figs. 13 and 14).

Above: the guaranteed flows, each with its guarantee and the goodput expected of it. Below, on a scale of its
own, what has no guarantee - a disturbance of 12 Gbit/s would flatten the flows beside it. Colours are those
of Okabe and Ito, which colour-blind people can tell apart; markers and labels beside the lines tell the flows
apart in grey, too.

The bytes depend on the recording and on matplotlib's version alone: not on the user's style, on the time or
on the machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.analysis.summary import FlowSummary, Summary
from bench.presentation.figures import labels
from bench.presentation.figures.labels import MUTED, Label
from bench.presentation.figures.series import Series, series
from bench.presentation.figures.style import COLOURS, bands, files, key, line, shade
from testbed.scenario import Scenario
from testbed.scenario.units import Unit, format_bps, format_number, unit_for

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bench.presentation.figures.style import Entries


TITLE = "Throughput of every flow against time, with guarantees, expected goodput and disturbances"

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<")  # as many again as have no divisor in common
MARKERS_ON_A_LINE = 9

# Inches. The width is that of a page's text.
WIDTH, UPPER, LOWER, GAP = 7.0, 2.8, 1.1, 0.14
LEFT, RIGHT, TOP, BOTTOM = 0.55, 1.75, 0.3, 0.42  # at the right are the labels
INNER = WIDTH - LEFT - RIGHT


@dataclass(frozen=True)
class _Look:
    colour: str
    marker: str


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


def render(samples: pd.DataFrame, scenario: Scenario, summary: Summary) -> dict[str, bytes]:
    """Return the figure by format: ``svg``, ``pdf`` and ``png``."""
    return files(lambda: _draw(samples, scenario, summary))


def _draw(samples: pd.DataFrame, scenario: Scenario, summary: Summary) -> Figure:
    from matplotlib.figure import Figure

    lines = series(samples, scenario)
    looks = {
        flow.name: _Look(COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)])
        for index, flow in enumerate(summary.flows)
    }
    panels = _panels(summary.flows)
    total = TOP + sum(height for _, height in panels) + GAP * (len(panels) - 1) + BOTTOM
    figure = Figure(figsize=(WIDTH, total))
    top = total - TOP
    for index, (flows, height) in enumerate(panels):
        axes = figure.add_axes((LEFT / WIDTH, (top - height) / total, INNER / WIDTH, height / total))
        top -= height + GAP
        promised = [flow.guarantee_bps or 0.0 for flow in flows]
        peak = max([*promised, *(lines[flow.name].peak for flow in flows if flow.name in lines)])
        unit = unit_for([peak])
        _frame(axes, scenario, (peak or unit.bits_per_second) / unit.bits_per_second, unit, height)
        for flow in flows:
            _flow(axes, flow, lines.get(flow.name), looks[flow.name], unit, scenario)
        named = [_label(flow, lines.get(flow.name), looks[flow.name], axes, unit, height) for flow in flows]
        labels.draw(axes, named, INNER, height)
        if index < len(panels) - 1:
            axes.tick_params(labelbottom=False)
        else:
            axes.set_xlabel("time in s")
    _key(figure, scenario, summary, total)
    return figure


def _panels(flows: Sequence[FlowSummary]) -> list[tuple[list[FlowSummary], float]]:
    """Return the flows and the height in inches of each panel; there is at least one."""
    upper = [flow for flow in flows if flow.role == "guaranteed"]
    lower = [flow for flow in flows if flow.role != "guaranteed"]
    if not upper:
        return [(lower, max(UPPER, len(lower) * labels.gap(len(lower))))]
    panels = [(upper, max(UPPER, len(upper) * labels.gap(len(upper))))]
    return [*panels, (lower, max(LOWER, len(lower) * labels.gap(len(lower))))] if lower else panels


def _frame(axes: Axes, scenario: Scenario, peak: float, unit: Unit, height: float) -> None:
    """Axes from zero, scaled to what is judged: a burst at the start may leave at the top."""
    axes.set_xlim(0, max(traffic.end for traffic in scenario.traffic))
    axes.set_ylim(0, peak * 1.08)
    axes.set_ylabel(f"throughput in {unit.name}" if height >= UPPER else unit.name)
    axes.yaxis.set_label_coords(-0.7 * LEFT / INNER, 0.5)  # the same in every panel
    axes.locator_params(axis="y", nbins="auto", steps=[1, 2, 2.5, 5, 10])
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.5)
    axes.set_axisbelow(True)
    bands(axes, scenario)


def _flow(
    axes: Axes, flow: FlowSummary, line: Series | None, look: _Look, unit: Unit, scenario: Scenario
) -> None:
    scale = unit.bits_per_second
    traffic = next(traffic for traffic in scenario.traffic if traffic.label == flow.name)
    for rate, style in ((flow.guarantee_bps, ":"), (flow.expected_goodput_bps, "--")):
        if rate is not None:
            axes.plot(
                [traffic.start, traffic.end],
                [rate / scale] * 2,
                style,
                color="black",
                linewidth=0.7,
                zorder=2,  # what is measured is drawn over it
            )
    if line is None:
        return
    if scenario.measurement.repetitions > 1:
        axes.fill_between(
            line.seconds, line.low / scale, line.high / scale, color=look.colour, alpha=0.2, linewidth=0
        )
    every = max(1, len(line.seconds) // MARKERS_ON_A_LINE)
    axes.plot(
        line.seconds,
        line.median / scale,
        color=look.colour,
        marker=look.marker,
        markersize=3.5,
        markevery=(every // 2, every),
        markeredgewidth=0,
        zorder=3,
    )


def _label(
    flow: FlowSummary, line: Series | None, look: _Look, axes: Axes, unit: Unit, height: float
) -> Label:
    """Return a flow's label, beside what is expected of it or else beside what it got."""
    rate = flow.expected_goodput_bps or (line.level if line else 0.0)
    share = min(rate / unit.bits_per_second / axes.get_ylim()[1], 1.0)
    promise = "no guarantee" if flow.guarantee_bps is None else f"guaranteed {format_bps(flow.guarantee_bps)}"
    return Label(flow.name, promise, share * height, look.colour, look.marker)


def _key(figure: Figure, scenario: Scenario, summary: Summary, total: float) -> None:
    """What the kinds of lines mean, in one row above the panels."""
    count = scenario.measurement.repetitions
    received = "received" if count == 1 else f"received: median and range of {count} repetitions"
    entries: Entries = {received: line(color=MUTED, marker="o", markersize=3.5, markeredgewidth=0)}
    if any(flow.role == "guaranteed" for flow in summary.flows):
        entries["expected goodput"] = line(linestyle="--", linewidth=0.7)
        entries["guarantee"] = line(linestyle=":", linewidth=0.7)
    if scenario.disturbances:
        entries["disturbance"] = shade()
    place = (LEFT / WIDTH, 1 - 0.04 / total)
    key(figure, entries, place, len(entries), fontsize=7, handlelength=2.2, columnspacing=1.6)
