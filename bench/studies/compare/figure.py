"""``comparison``: two runs in one figure; a row for each guaranteed flow.

On the left what it got against time, on the right the share of its samples that got no more than that, both
in percent of what is expected, so that runs at different scales are of one picture. A flow has its own colour
in both runs; what tells these apart are dashes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.analysis.excuses import Moments, together
from bench.presentation.figures import style
from bench.presentation.figures.head import EDGE, Head, Key
from bench.presentation.figures.labels import arrowed
from bench.presentation.figures.series import Series, ceiling, cut, series
from bench.presentation.figures.sheet import SMALL, Sheet
from bench.presentation.figures.style import INK, MUTED, bands, files, line, looks, shade
from bench.recording.records import RunRecord
from testbed.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bench.analysis.statistics import Floats

NAME = "comparison"
DASHES: Sequence[str] = ("-", "--")  # of the one run, and of the other
# Units.
LEFT, RIGHT, BETWEEN, TITLE, HEIGHT, GAP, BOTTOM = 0.55, 0.12, 0.5, 0.2, 1.0, 0.28, 0.42
SHARE = 0.62  # of the left panels
MARGIN = 5  # percent of what is expected that the right panels show around all samples


@dataclass(frozen=True)
class Side:
    """One of the two runs."""

    name: str  # what is said of it in the key
    scenario: Scenario
    record: RunRecord
    samples: pd.DataFrame
    expected: Mapping[str, float]  # of each guaranteed flow, bits per second

    def shares(self, flow: str) -> Floats:
        """Return what the samples behind the warm-up got, in percent of what is expected."""
        import numpy as np

        begun = next(one.start for one in self.scenario.flows if one.label == flow)
        own = self.samples[(self.samples["flow"] == flow) & (self.samples["source"] == "receiver")]
        judged = own[own["start_s"] >= begun + self.scenario.measurement.warm_up]
        return np.sort(judged["bits_per_second"].to_numpy()) / self.expected[flow] * 100


def render(sides: tuple[Side, Side], finding: str, sheet: Sheet) -> dict[str, bytes]:
    """Return the figure by format; ``finding`` is what the runs are compared with each other."""
    return files(lambda: draw(sides, finding, sheet), sheet)


def draw(sides: tuple[Side, Side], finding: str, sheet: Sheet) -> Figure:
    """Return the figure; ``style.files`` makes files of it."""
    one, _ = sides
    found = together(style.moments(side.record) for side in sides)
    head = Head(sheet, f"B compared with A: {finding}", INK, Key(sheet, _entries(sides, found), EDGE))
    flows, looked = list(one.expected), looks(one.scenario)
    rest = head.height + BOTTOM + len(flows) * TITLE + max(len(flows) - 1, 0) * GAP
    heights = sheet.fitted([HEIGHT] * len(flows), rest) if flows else []
    figure = sheet.figure(rest + sum(heights))
    lines = [series(side.samples, side.scenario) for side in sides]
    inner = sheet.room - LEFT - RIGHT - BETWEEN
    top = head.height
    for number, (flow, height) in enumerate(zip(flows, heights, strict=True)):
        top += TITLE
        over_time = sheet.panel(figure, LEFT, top, SHARE * inner, height)
        spread = sheet.panel(figure, LEFT + SHARE * inner + BETWEEN, top, (1 - SHARE) * inner, height)
        top += height + GAP
        _over_time(over_time, sides, flow, [known.get(flow) for known in lines], looked[flow].colour, sheet)
        style.mark(over_time, found)
        _spread(spread, sides, flow, looked[flow].colour, sheet)
        over_time.set_title(arrowed(flow), fontsize=sheet.points(SMALL), loc="left", parse_math=False)
        if number == 0:
            spread.set_title("share of samples", fontsize=sheet.points(SMALL), loc="left")
        if number == len(flows) - 1:
            over_time.set_xlabel("time in s")
            spread.set_xlabel("% of expected")
    head.draw(figure)
    return figure


def _entries(sides: Sequence[Side], found: Moments) -> style.Entries:
    entries: style.Entries = [
        (side.name, line(color=MUTED, linestyle=dashes)) for side, dashes in zip(sides, DASHES, strict=True)
    ]
    if any(side.scenario.disturbances for side in sides):
        entries += [("disturbed", shade())]
    return entries + style.of_moments(found)


def _over_time(
    axes: Axes, sides: Sequence[Side], flow: str, lines: Sequence[Series | None], colour: str, sheet: Sheet
) -> None:
    scaled = [
        None if one is None else one.scaled(100 / side.expected[flow])
        for one, side in zip(lines, sides, strict=True)
    ]
    most = ceiling([one for one in scaled if one], [100])
    axes.set_xlim(0, max(side.scenario.duration for side in sides))
    axes.set_ylim(0, most * 1.08)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_ylabel("% of expected")
    axes.yaxis.set_label_coords(-0.7 * LEFT / (SHARE * (sheet.room - LEFT - RIGHT - BETWEEN)), 0.5)
    bands(axes, sides[0].scenario)
    axes.axhline(100, color=INK, linestyle=":", linewidth=sheet.points(0.7), zorder=2)
    for one, dashes in zip(scaled, DASHES, strict=True):
        if one is not None:
            if (one.high > one.low).any():
                low, high = (cut(rates, most)[0] for rates in (one.low, one.high))
                axes.fill_between(one.seconds, low, high, color=colour, alpha=0.15, linewidth=0)
            axes.plot(one.seconds, cut(one.median, most)[0], dashes, color=colour, zorder=3)


def _spread(axes: Axes, sides: Sequence[Side], flow: str, colour: str, sheet: Sheet) -> None:
    import numpy as np

    found = [side.shares(flow) for side in sides]
    ends = np.concatenate([*found, [100.0]])
    axes.set_xlim(max(0.0, ends.min() - MARGIN), ends.max() + MARGIN)
    axes.set_ylim(0, 1)
    axes.set_yticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
    axes.locator_params(axis="x", nbins=4, steps=[1, 2, 5, 10])
    axes.grid(axis="both")
    axes.axvline(100, color=INK, linestyle=":", linewidth=sheet.points(0.7), zorder=2)
    for shares, dashes in zip(found, DASHES, strict=True):
        if len(shares):
            axes.ecdf(shares, color=colour, linestyle=dashes)
