"""``figures/latency``: how long requests took, when, and how that is spread; a row for each kind of them.

On the left each exchange against the moment at which it was due; on the right the share of each phase's
exchanges that took longer. Both are logarithmic: a path of 0.1 ms and a queue of 10 ms are of one picture,
and the last percent has as much room as the 90 before it. What was lost is at the upper edge.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from bench.analysis.exchanges import latencies
from bench.analysis.summary import RequestsSummary
from bench.presentation.figures import style
from bench.presentation.figures.head import EDGE, Key, above
from bench.presentation.figures.labels import promise, shortened
from bench.presentation.figures.sheet import SMALL, Sheet, Subject
from bench.presentation.figures.style import INK, MUTED, bands, files, line, looks, shade
from testbed.scenario import Scenario
from testbed.scenario.units import format_digits

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from bench.analysis.excuses import Moments
    from bench.analysis.statistics import Floats
    from bench.presentation.figures.style import Entries

    Phases = NDArray[np.str_]

TITLE = "How long each request took, against time, and the share of them that took longer"
MILLISECONDS = 1000
# Units.
LEFT, RIGHT, BOTTOM, HEADING = 0.55, 0.12, 0.42, 0.15
HEIGHT, LOW = 1.6, 1.1  # of a panel where both have a row, and where each has its own
# Below a row; between its panels, beside each other and one above the other.
GAP, BETWEEN, OWN = 0.5, 0.62, 0.66
WIDE = 5.5  # from this room on, both are beside each other
SHARE = 0.68  # of the left one, then
LINES = ("-", "--", ":", "-.")  # of the phases
RANGE = (0.01, 1e5)  # milliseconds, of what can be drawn
# Share of the exchanges to which the axis reaches: of many, and of a few.
LEAST, SEVERAL = 0.0001, 0.001
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


def render(subject: Subject, sheet: Sheet) -> dict[str, bytes]:
    """Return the figure by format."""
    return files(lambda: _draw(subject, sheet), sheet, every_point=True)


def _draw(subject: Subject, sheet: Sheet) -> Figure:
    scenario, exchanges, all_of_them = subject.scenario, subject.exchanges, subject.summary.requests
    took, looked = latencies(exchanges) * MILLISECONDS, looks(scenario)
    phases = list(dict.fromkeys(phase for one in all_of_them for phase in one.phases))
    found = style.moments(subject.record)
    wide, rows = sheet.room >= WIDE, len(all_of_them)
    head = above(subject, Key(sheet, _entries(phases, subject, found), LEFT if wide else EDGE))
    gap = GAP if wide else OWN
    rest = head.height + HEADING + BOTTOM + (rows - 1) * gap
    (height,) = {*sheet.fitted([HEIGHT] * rows, rest)} if wide else {2 * LOW + OWN}
    figure = sheet.figure(rest + rows * height)
    for index, requests in enumerate(all_of_them):
        top = head.height + HEADING + index * (height + gap)
        colour = looked[requests.name].colour
        own = (exchanges["requests"] == requests.name).to_numpy()
        panels = _panels(figure, sheet, top, height)
        over_time, exceeding = panels
        _over_time(over_time, exchanges[own]["due_s"].to_numpy(), took[own], colour, scenario, sheet)
        style.mark(over_time, found)
        _exceeding(exceeding, exchanges[own]["phase"].to_numpy(), took[own], colour, phases, sheet)
        low, high = _limits(took)
        over_time.set_ylim(low, high)
        exceeding.set_xlim(low, high)
        over_time.yaxis.set_major_formatter("{x:g}")
        exceeding.xaxis.set_major_formatter("{x:g}")
        if requests.latency_s is not None:
            look: Any = {"color": INK, "linestyle": ":", "linewidth": sheet.points(0.8)}
            over_time.axhline(requests.latency_s * MILLISECONDS, **look)
            exceeding.axvline(requests.latency_s * MILLISECONDS, **look)
        over_time.set_title(_heading(requests), fontsize=sheet.points(SMALL), loc="left", parse_math=False)
        if index == rows - 1 or not wide:
            over_time.set_xlabel("due at, in s")
            exceeding.set_xlabel("time in ms")
        else:
            for axes in panels:
                axes.tick_params(labelbottom=False)
    head.draw(figure)
    return figure


def _panels(figure: Figure, sheet: Sheet, top: float, height: float) -> tuple[Axes, Axes]:
    """Return a row's panels, which begin ``top`` units from the figure's upper edge and are as high."""
    inner = sheet.room - LEFT - RIGHT
    if sheet.room >= WIDE:
        wide = SHARE * (inner - BETWEEN)
        right = sheet.panel(figure, LEFT + wide + BETWEEN, top, inner - BETWEEN - wide, height)
        return sheet.panel(figure, LEFT, top, wide, height), right
    return sheet.panel(figure, LEFT, top, inner, LOW), sheet.panel(figure, LEFT, top + LOW + OWN, inner, LOW)


def _over_time(axes: Axes, due: Floats, took: Floats, colour: str, scenario: Scenario, sheet: Sheet) -> None:
    import numpy as np

    axes.set_xlim(0, scenario.duration)
    axes.set_yscale("log")
    axes.set_ylabel("time in ms")
    axes.yaxis.set_label_coords(-0.7 * LEFT / WIDE, 0.5)
    bands(axes, scenario)
    # Points by the ten thousand are a picture in the vector formats, too.
    look: Any = {"linestyle": "none", "marker": ".", "markeredgewidth": 0, "rasterized": True}
    axes.plot(due, took, color=colour, markersize=sheet.points(2), zorder=3, **look)
    lost = due[np.isinf(took)]
    if len(lost):
        look = {"linestyle": "none", "marker": "v", "color": "black", "clip_on": False, "rasterized": True}
        axes.plot(
            lost,
            [1] * len(lost),
            markersize=sheet.points(3),
            transform=axes.get_xaxis_transform(),
            zorder=4,
            **look,
        )


def _exceeding(axes: Axes, found: Phases, took: Floats, colour: str, phases: list[str], sheet: Sheet) -> None:
    least = LEAST if len(took) > 1 / SEVERAL else SEVERAL
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(least, 1)
    axes.set_title("share that took longer", fontsize=sheet.points(SMALL), loc="left")
    ticks = [10.0**power for power in range(round(math.log10(least)), 1)]
    axes.set_yticks(ticks, [f"{tick * 100:g} %" for tick in ticks])
    axes.grid(axis="both")
    for number, phase in enumerate(phases):
        times, shares = exceeding(took[found == phase])
        look = LINES[number % len(LINES)]
        axes.plot(
            times,
            shares.clip(least),  # nothing took longer than the longest: the line ends on the axis
            look,
            color=colour,
            drawstyle="steps-post",
            linewidth=sheet.points(1),
        )


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
    rate = f"{format_digits(requests.rate)} a second"
    return f"{shortened(requests.name)}: {rate}, {promise(requests.guarantee_bps)}"


def _entries(phases: list[str], subject: Subject, found: Moments) -> Entries:
    entries: Entries = [
        (phase, line(linestyle=LINES[number % len(LINES)], color=MUTED, linewidth=1))
        for number, phase in enumerate(phases)
    ]
    if any(phase.lost for one in subject.summary.requests for phase in one.phases.values()):
        entries += [("lost", line(linestyle="none", marker="v", markersize=3))]
    if any(one.latency_s is not None for one in subject.summary.requests):
        entries += [("99 % at most", line(linestyle=":", linewidth=0.8))]
    if subject.scenario.disturbances:
        entries += [("time of the disturbance", shade())]
    return entries + style.of_moments(found)


def _limits(took: Floats) -> tuple[float, float]:
    """Return the ends of the scale of times, milliseconds: powers of ten around all that was answered."""
    import numpy as np

    answered = took[np.isfinite(took)]
    if not len(answered):
        return RANGE
    lowest, highest = (min(max(float(end), RANGE[0]), RANGE[1]) for end in (answered.min(), answered.max()))
    return 10 ** math.floor(math.log10(lowest)), 10 ** (math.floor(math.log10(highest)) + 1)
