"""How often does a flow get how much of what it should? A figure in one file, from outside the project.

CONCORDE_EXTENSIONS=docs/examples/share_figure.py ./invokew figures RUN
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bench.analysis.summary import Summary
from bench.presentation.figures import style
from bench.presentation.figures.known import Figure, register
from testbed.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib import figure


def render(samples: pd.DataFrame, scenario: Scenario, summary: Summary) -> Mapping[str, bytes]:
    """Return the figure by format."""
    return style.files(lambda: _draw(samples, summary))


def _draw(samples: pd.DataFrame, summary: Summary) -> figure.Figure:
    from matplotlib.figure import Figure as Drawing

    drawing = Drawing(figsize=(7.0, 2.8), layout="constrained")
    axes = drawing.add_subplot(xlabel="share of the expected goodput", ylabel="share of samples")
    received = samples[samples["source"] == "receiver"]
    for flow in summary.flows:
        rates = received[received["flow"] == flow.name]["bits_per_second"]
        if flow.expected_goodput_bps and len(rates):
            axes.ecdf(rates / flow.expected_goodput_bps, label=flow.name)
    if axes.lines:
        axes.legend(frameon=False)
    return drawing


def caption(_scenario: Scenario) -> str:
    """Return what stands below the figure."""
    return "Empirical distribution of every sample, warm-up included, over what was expected of its flow."


register(Figure("share", "Distribution of each flow's samples over what was expected", caption, render))
