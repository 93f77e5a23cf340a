"""Which figures are drawn of every recording, in the order in which the report shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from bench.analysis.summary import Summary
from bench.presentation.figures import latency, throughput
from testbed.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Figure:
    """One figure: what its files are called, what it shows, and what draws it."""

    name: str  # of its files, as in figures/NAME.svg
    title: str  # what it shows, for who cannot see it
    caption: Callable[[Scenario], str]  # what stands below it in the report
    # Returns the content of its files by format, of which one is png and one pdf; see ``style.files``.
    render: Callable[[pd.DataFrame, Scenario, Summary], Mapping[str, bytes]]
    charted: bool = False  # whether the report's chart shows the same, where scripts run
    # What it is drawn of: what each flow got, or when each request was answered; without any it is not drawn.
    of: Literal["samples", "exchanges"] = "samples"


FIGURES: dict[str, Figure] = {}


def register(figure: Figure) -> None:
    """Let a figure be drawn of every recording that is analysed from now on. Raises LookupError."""
    if figure.name in FIGURES:
        raise LookupError(f"there is a figure {figure.name!r} already")
    FIGURES[figure.name] = figure


register(Figure("throughput", throughput.TITLE, throughput.caption, throughput.render, charted=True))
register(Figure("latency", latency.TITLE, latency.caption, latency.render, of="exchanges"))
