"""``figures/throughput``: who got how much, when (the paper's figs. 13 and 14).

Above: the guaranteed flows, each with its guarantee and the goodput expected of it. Below, on a scale of its
own, what has no guarantee - a disturbance of 12 Gbit/s would flatten the flows beside it. Colours are those
of Okabe and Ito, which colour-blind people can tell apart; markers and labels beside the lines tell the flows
apart in grey, too.

The bytes depend on the recording and on matplotlib's version alone: not on the user's style, on the time or
on the machine.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.phases import Span, merge
from bench.summary import FlowSummary, Summary
from bench.units import Unit, format_bps, unit_for
from testbed.scenario import Scenario

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

FORMATS = ("svg", "pdf", "png")

# Okabe & Ito, "Color Universal Design" (2008), without the yellow that vanishes on white paper.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<")  # as many again as have no divisor in common
MUTED = "#595959"
SHADE = "#E9E9E9"
MARKERS_ON_A_LINE = 9

# Inches. The width is that of a page's text.
WIDTH, UPPER, LOWER, GAP = 7.0, 2.8, 1.1, 0.14
LEFT, LABELS, TOP, BOTTOM = 0.55, 1.75, 0.3, 0.42
NAME_SIZE, RATE_SIZE = 7.5, 6.5  # points
LONGEST_NAME = 24
TWO_LINE_LABELS = 8  # up to so many flows a label has room for its rates on a second line

STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 8,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.3,
    "svg.hashsalt": "throughput",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "savefig.dpi": 200,
}
METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}


@dataclass(frozen=True)
class Series:
    """One transfer: median, lowest and highest of the repetitions, bits per second."""

    seconds: Floats
    median: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True)
class _Look:
    colour: str
    marker: str


def render(samples: pd.DataFrame, scenario: Scenario, summary: Summary) -> dict[str, bytes]:
    """Return the figure by format: ``svg``, ``pdf`` and ``png``. It is drawn once."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        figure = _draw(samples, scenario, summary)
        return {kind: _save(figure, kind) for kind in FORMATS}


def series(samples: pd.DataFrame, interval_s: float) -> dict[str, Series]:
    """Return what the receivers saw, by flow; the n-th samples of all repetitions belong together."""
    import numpy as np

    result: dict[str, Series] = {}
    for flow, table in samples[samples["source"] == "receiver"].groupby("flow", sort=False):
        begun = table.groupby("repetition")["start_s"].transform("min")
        number = ((table["start_s"] - begun) / interval_s).round()
        middle = (table["start_s"] + table["end_s"]) / 2
        together = table.assign(middle=middle).groupby(number)
        rates = together["bits_per_second"]
        columns = (together["middle"].median(), rates.median(), rates.min(), rates.max())
        result[str(flow)] = Series(*(np.asarray(column, dtype=np.float64) for column in columns))
    return result


def spread(wanted: Sequence[float], gap: float, room: float) -> list[float]:
    """Return positions near those wanted, in the same order, at least ``gap`` apart, within 0 to ``room``.

    If they cannot all fit they keep their gap and leave the room at the top.
    """
    order = sorted(range(len(wanted)), key=lambda index: (wanted[index], index))
    places = [0.0] * len(wanted)
    limit = 0.0
    for index in order:
        places[index] = limit = max(wanted[index], limit)
        limit += gap
    limit = max(room, gap * (len(wanted) - 1))
    for index in reversed(order):
        places[index] = limit = min(places[index], limit)
        limit -= gap
    return places


def _save(figure: Figure, kind: str) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, metadata=METADATA[kind])
    return buffer.getvalue()


def _draw(samples: pd.DataFrame, scenario: Scenario, summary: Summary) -> Figure:
    from matplotlib.figure import Figure

    lines = series(samples, scenario.measurement.interval)
    judged = samples[samples["start_s"] >= scenario.measurement.warm_up]
    peaks = judged[judged["source"] == "receiver"].groupby("flow")["bits_per_second"].max().to_dict()
    looks = {
        flow.name: _Look(COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)])
        for index, flow in enumerate(summary.flows)
    }
    panels = _panels(summary.flows)
    total = TOP + sum(height for _, height in panels) + GAP * (len(panels) - 1) + BOTTOM
    figure = Figure(figsize=(WIDTH, total))
    top = total - TOP
    for index, (flows, height) in enumerate(panels):
        axes = figure.add_axes(
            (LEFT / WIDTH, (top - height) / total, 1 - (LEFT + LABELS) / WIDTH, height / total)
        )
        top -= height + GAP
        peak = max([*(f.guarantee_bps or 0 for f in flows), *(peaks.get(f.name, 0) for f in flows)])
        unit = unit_for([peak])
        _frame(axes, scenario, (peak or unit.bits_per_second) / unit.bits_per_second, unit, height)
        for flow in flows:
            _flow(axes, flow, lines.get(flow.name), looks[flow.name], unit, scenario)
        _labels(axes, flows, lines, looks, unit, height)
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
        return [(lower, max(UPPER, len(lower) * _gap(lower)))]
    panels = [(upper, max(UPPER, len(upper) * _gap(upper)))]
    return [*panels, (lower, max(LOWER, len(lower) * _gap(lower)))] if lower else panels


def _gap(flows: Sequence[FlowSummary]) -> float:
    """Return the inches from one label to the next."""
    return 0.3 if len(flows) <= TWO_LINE_LABELS else 0.16


def _frame(axes: Axes, scenario: Scenario, peak: float, unit: Unit, height: float) -> None:
    """Axes from zero, scaled to what is judged: a burst at the start may leave at the top."""
    axes.set_xlim(0, max(traffic.end for traffic in scenario.traffic))
    axes.set_ylim(0, peak * 1.08)
    axes.set_ylabel(f"throughput in {unit.name}" if height >= UPPER else unit.name)
    axes.yaxis.set_label_coords(-0.7 * LEFT / (WIDTH - LEFT - LABELS), 0.5)  # the same in every panel
    axes.locator_params(axis="y", nbins="auto", steps=[1, 2, 2.5, 5, 10])
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.5)
    axes.set_axisbelow(True)
    for span in merge(Span(disturbance.start, disturbance.end) for disturbance in scenario.disturbances):
        axes.axvspan(span.start, span.end, color=SHADE, linewidth=0, zorder=0)


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
                zorder=4,
            )
    if line is None:
        return
    if scenario.measurement.repetitions > 1:
        axes.fill_between(
            line.seconds, line.low / scale, line.high / scale, color=look.colour, alpha=0.25, linewidth=0
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


def _labels(
    axes: Axes,
    flows: Sequence[FlowSummary],
    lines: dict[str, Series],
    looks: dict[str, _Look],
    unit: Unit,
    height: float,
) -> None:
    """Name each line at the right, beside where it ends, with a leader in its colour and its marker."""
    scale, (_, ceiling) = unit.bits_per_second, axes.get_ylim()
    ends = [_end(flow, lines.get(flow.name)) / scale for flow in flows]
    wanted = [min(end / ceiling, 1.0) * height for end in ends]
    places = spread(wanted, _gap(flows), height)
    inch = 1 / (WIDTH - LEFT - LABELS)  # in shares of the axes' width
    for flow, start, place in zip(flows, wanted, places, strict=True):
        look = looks[flow.name]
        axes.plot(
            [1 + 0.04 * inch, 1 + 0.14 * inch, 1 + 0.2 * inch, 1 + 0.27 * inch],
            [start / height, start / height, place / height, place / height],
            color=look.colour,
            marker=look.marker,
            markersize=3.5,
            markeredgewidth=0,
            markevery=[3],
            linewidth=0.8,
            transform=axes.transAxes,
            clip_on=False,
        )
        name, rates = _shortened(flow.name), _rates(flow)
        two_lines = bool(rates) and len(flows) <= TWO_LINE_LABELS
        axes.text(
            1 + 0.34 * inch,
            place / height,
            name,
            transform=axes.transAxes,
            fontsize=NAME_SIZE,
            va="bottom" if two_lines else "center",
            parse_math=False,
        )
        if two_lines:
            axes.text(
                1 + 0.34 * inch,
                place / height,
                rates,
                transform=axes.transAxes,
                fontsize=RATE_SIZE,
                color=MUTED,
                va="top",
            )


def _end(flow: FlowSummary, line: Series | None) -> float:
    """Return the rate beside which a line's label belongs: what is expected, or else its own median."""
    if flow.expected_goodput_bps is not None:
        return flow.expected_goodput_bps
    return 0.0 if line is None else float(sorted(line.median)[len(line.median) // 2])


def _rates(flow: FlowSummary) -> str:
    return "no guarantee" if flow.guarantee_bps is None else f"guaranteed {format_bps(flow.guarantee_bps)}"


def _shortened(name: str) -> str:
    """Return a name that fits; long ones differ at their beginning or end more often than in the middle."""
    name = name.replace("->", "→")
    half = LONGEST_NAME // 2
    return name if len(name) <= LONGEST_NAME else f"{name[: half - 1]}…{name[-half:]}"


def _key(figure: Figure, scenario: Scenario, summary: Summary, total: float) -> None:
    """What the kinds of lines mean, in one row above the panels."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    count = scenario.measurement.repetitions
    received = "received" if count == 1 else f"received: median and range of {count} repetitions"
    handles: list[Any] = [Line2D([], [], color=MUTED, marker="o", markersize=3.5, markeredgewidth=0)]
    texts = [received]
    if any(flow.role == "guaranteed" for flow in summary.flows):
        handles += [Line2D([], [], color="black", linestyle=style, linewidth=0.7) for style in ("--", ":")]
        texts += ["expected goodput", "guarantee"]
    if scenario.disturbances:
        handles.append(Patch(color=SHADE))
        texts.append("disturbance")
    figure.legend(
        handles,
        texts,
        loc="upper left",
        bbox_to_anchor=(LEFT / WIDTH, 1 - 0.04 / total),
        ncols=len(handles),
        frameon=False,
        fontsize=7,
        handlelength=2.2,
        columnspacing=1.6,
        borderaxespad=0,
        borderpad=0,
    )
