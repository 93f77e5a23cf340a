"""``figures/latency``: how long requests took, when, and how that is spread; a row for each kind of them.

On the left each exchange against the moment at which it was due; on the right the share of each phase's
exchanges that took longer. Both are logarithmic: a path of 0.1 ms and a queue of 10 ms are of one picture,
and the last percent has as much room as the 90 before it. What was lost is at the upper edge.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from bench.analysis.exchanges import latencies
from bench.analysis.requests_summary import RequestsSummary
from bench.analysis.summary import Summary
from bench.presentation.figures.labels import MUTED, shortened
from bench.presentation.figures.style import COLOURS, bands, files, key, line, shade
from testbed.scenario import Scenario
from testbed.scenario.units import format_bps, format_digits

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from bench.analysis.statistics import Floats
    from bench.presentation.figures.style import Entries

    Phases = NDArray[np.str_]

TITLE = "How long each request took, against time, and the share of them that took longer"
MILLISECONDS = 1000
# Inches.
WIDTH, HEIGHT, GAP, BETWEEN = 7.0, 1.7, 0.5, 0.62
LEFT, RIGHT, TOP, BOTTOM = 0.55, 0.12, 0.3, 0.45
WIDE = 4.0  # of the left panel
LINES = ("-", "--", ":", "-.")  # of the phases
RANGE = (0.01, 1e5)  # milliseconds, of what can be drawn
LEAST = 0.0005  # share of the exchanges
POINTS = 100  # of a line, in each of its powers of ten


def caption(scenario: Scenario) -> str:
    """Return what stands below the figure."""
    text = (
        "Each exchange from when it was due to when its answer had come; what was lost is at the upper edge. "
        "On the right the share of the exchanges of each phase that took longer than a time: where a line "
        "passes 1 % is the 99th percentile."
    )
    if any(requests.latency is not None for requests in scenario.requests):
        text += " What is dotted 99 % must not exceed."
    if scenario.measurement.repetitions > 1:
        text += f" All {scenario.measurement.repetitions} repetitions."
    return text


def render(exchanges: pd.DataFrame, scenario: Scenario, summary: Summary) -> dict[str, bytes]:
    """Return the figure by format: ``svg``, ``pdf`` and ``png``."""
    return files(lambda: _draw(exchanges, scenario, summary), every_point=True)


def _draw(exchanges: pd.DataFrame, scenario: Scenario, summary: Summary) -> Figure:
    from matplotlib.figure import Figure

    rows = len(summary.requests)
    total = TOP + rows * HEIGHT + (rows - 1) * GAP + BOTTOM + 0.2
    figure = Figure(figsize=(WIDTH, total))
    took = latencies(exchanges) * MILLISECONDS
    low, high = _limits(took)
    phases = list(dict.fromkeys(phase for one in summary.requests for phase in one.phases))
    for index, requests in enumerate(summary.requests):
        bottom = (total - TOP - 0.2 - (index + 1) * HEIGHT - index * GAP) / total
        last = index == rows - 1
        colour = COLOURS[index % len(COLOURS)]
        own = (exchanges["requests"] == requests.name).to_numpy()
        over_time = figure.add_axes((LEFT / WIDTH, bottom, WIDE / WIDTH, HEIGHT / total))
        _over_time(over_time, exchanges[own]["due_s"].to_numpy(), took[own], colour, scenario)
        narrow = WIDTH - LEFT - WIDE - BETWEEN - RIGHT
        left = LEFT + WIDE + BETWEEN
        exceeding = figure.add_axes((left / WIDTH, bottom, narrow / WIDTH, HEIGHT / total))
        _exceeding(exceeding, exchanges[own]["phase"].to_numpy(), took[own], colour, phases)
        for axes in (over_time, exceeding):
            axes.grid(color="#DDDDDD", linewidth=0.5)
            axes.set_axisbelow(True)
            axes.tick_params(labelbottom=last)
        over_time.set_ylim(low, high)
        exceeding.set_xlim(low, high)
        over_time.yaxis.set_major_formatter("{x:g}")
        exceeding.xaxis.set_major_formatter("{x:g}")
        if requests.latency_s is not None:
            over_time.axhline(requests.latency_s * MILLISECONDS, color="black", linestyle=":", linewidth=0.8)
            exceeding.axvline(requests.latency_s * MILLISECONDS, color="black", linestyle=":", linewidth=0.8)
        over_time.set_title(_heading(requests), fontsize=7.5, loc="left", pad=3, parse_math=False)
        if last:
            over_time.set_xlabel("due at, in s")
            exceeding.set_xlabel("time in ms")
    _key(figure, phases, scenario, summary, total)
    return figure


def _over_time(axes: Axes, due: Floats, took: Floats, colour: str, scenario: Scenario) -> None:
    import numpy as np

    axes.set_xlim(0, scenario.duration)
    axes.set_yscale("log")
    axes.set_ylabel("time in ms")
    axes.yaxis.set_label_coords(-0.7 * LEFT / WIDE, 0.5)
    bands(axes, scenario)
    # Points by the ten thousand are a picture in the vector formats, too.
    look: Any = {"linestyle": "none", "marker": ".", "markeredgewidth": 0, "rasterized": True}
    axes.plot(due, took, color=colour, markersize=2, zorder=3, **look)
    lost = due[np.isinf(took)]
    if len(lost):
        look = {"linestyle": "none", "marker": "v", "color": "black", "clip_on": False, "rasterized": True}
        axes.plot(lost, [1] * len(lost), markersize=3, transform=axes.get_xaxis_transform(), zorder=4, **look)


def _exceeding(axes: Axes, found: Phases, took: Floats, colour: str, phases: list[str]) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(LEAST, 1)
    axes.set_yticks([1, 0.1, 0.01, 0.001], ["100 %", "10 %", "1 %", "0.1 %"])
    for number, phase in enumerate(phases):
        times, shares = exceeding(took[found == phase])
        look = LINES[number % len(LINES)]
        axes.plot(times, shares, look, color=colour, drawstyle="steps-post", linewidth=1)


def exceeding(took: Floats) -> tuple[Floats, Floats]:
    """Return some of the times, ordered, and the share of all that took longer than each of them.

    Few where there are many that hardly differ, all of the last. What was lost took longer than any.
    """
    import numpy as np

    ordered = np.sort(took)
    longer = len(ordered) - 1 - np.arange(len(ordered))  # of each, how many are above it
    kept = np.isfinite(ordered) & (longer % np.maximum(1, longer // POINTS) == 0)
    return ordered[kept], longer[kept] / max(len(ordered), 1)


def _heading(requests: RequestsSummary) -> str:
    rate, promise = requests.guarantee_bps, "no guarantee"
    if rate is not None:
        promise = f"guaranteed {format_bps(rate)}"
    return f"{shortened(requests.name)}: {format_digits(requests.rate)} a second, {promise}"


def _key(figure: Figure, phases: list[str], scenario: Scenario, summary: Summary, total: float) -> None:
    entries: Entries = {
        phase: line(linestyle=LINES[number % len(LINES)], color=MUTED, linewidth=1)
        for number, phase in enumerate(phases)
    }
    if any(phase.lost for one in summary.requests for phase in one.phases.values()):
        entries["lost"] = line(linestyle="none", marker="v", markersize=3)
    if any(one.latency_s is not None for one in summary.requests):
        entries["99 % at most"] = line(linestyle=":", linewidth=0.8)
    if scenario.disturbances:
        entries["disturbance"] = shade()
    key(figure, entries, (LEFT / WIDTH, 1 - 0.04 / total), len(entries), fontsize=7, columnspacing=1.6)


def _limits(took: Floats) -> tuple[float, float]:
    """Return the ends of the scale of times, milliseconds: powers of ten around all that was answered."""
    import numpy as np

    answered = took[np.isfinite(took)]
    if not len(answered):
        return RANGE
    lowest, highest = (min(max(float(end), RANGE[0]), RANGE[1]) for end in (answered.min(), answered.max()))
    return 10 ** math.floor(math.log10(lowest)), 10 ** (math.floor(math.log10(highest)) + 1)
