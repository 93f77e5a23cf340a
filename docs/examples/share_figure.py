"""How often does a flow get how much of what it should? A figure in one file, from outside the project.

CONCORDE_EXTENSIONS=docs/examples/share_figure.py ./invokew figures RUN
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pydantic import Field

from bench.presentation.figures import style
from bench.presentation.figures.registry import Figure, register
from bench.presentation.figures.sheet import Sheet, Subject
from bench.presentation.figures.style import looks
from testbed.scenario import Scenario
from testbed.scenario.words import Part

if TYPE_CHECKING:
    from matplotlib import figure


class Share(Part):
    """A scenario's settings.figure.share."""

    height: float = Field(2.8, ge=1, le=20, description="inches")


def render(subject: Subject, sheet: Sheet, settings: Share) -> Mapping[str, bytes]:
    """Return the figure by format."""
    return style.files(lambda: _draw(subject, sheet, settings), sheet)


def _draw(subject: Subject, sheet: Sheet, settings: Share) -> figure.Figure:
    drawing = sheet.figure(height=settings.height)
    drawing.set_layout_engine("constrained")
    axes = drawing.add_subplot(xlabel="share of the expected goodput", ylabel="share of samples")
    received = subject.samples[subject.samples["source"] == "receiver"]
    for flow in subject.summary.flows:
        rates = received[received["flow"] == flow.name]["bits_per_second"]
        if flow.expected_goodput_bps and len(rates):
            colour = looks(subject.scenario)[flow.name].colour
            axes.ecdf(rates / flow.expected_goodput_bps, label=flow.name, color=colour)
    if axes.lines:
        axes.legend(frameon=False)
    return drawing


def caption(_scenario: Scenario) -> str:
    """Return what stands below the figure."""
    return "Empirical distribution of every sample, warm-up included, over what was expected of its flow."


register(
    Figure(
        "share",
        "Distribution of each flow's samples over what was expected",
        caption,
        render,
        settings=Share(),
    )
)
