"""Which figures are drawn of every recording, in the order in which the report shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from bench.presentation.figures import grants, latency, throughput
from bench.presentation.figures.sheet import Sheet, Subject
from testbed.registry import Registry
from testbed.scenario import Scenario
from testbed.scenario.words import Part


@dataclass(frozen=True)
class Figure:
    """One figure: what its files are called, what it shows, and what draws it."""

    name: str  # of its files, as in figures/NAME.svg
    title: str  # what it shows, for who cannot see it
    caption: Callable[[Scenario], str]  # what stands below it in the report
    # Of a Subject, a Sheet, and the figure's settings if it has any: returns the content of its files, by
    # those formats that the sheet asks for (``style.files``), or nothing, if there is nothing to be seen.
    render: Callable[..., Mapping[str, bytes]]
    charted: bool = False  # whether the report's chart shows the same, where scripts run
    # What it is drawn of: what each flow got, or when each request was answered; without any it is not drawn.
    of: Literal["samples", "exchanges"] = "samples"
    settings: Part | None = None  # its own, where a scenario says nothing


FIGURES = Registry[Figure]("figure", word="figure")


def register(figure: Figure) -> None:
    """Let a figure be drawn of every recording that is analysed from now on. Raises ValueError."""
    FIGURES.register(figure.name, figure)


def draw(subject: Subject, sheet: Sheet) -> dict[str, Mapping[str, bytes]]:
    """Return the files of every figure that there is of a recording, by its name and their format."""
    scenario = subject.scenario
    there = {"samples": scenario.traffic, "exchanges": scenario.requests}
    drawn = {
        name: figure.render(subject, sheet, *FIGURES.handed(name, scenario.settings))
        for name, figure in FIGURES.items()
        if there[figure.of]
    }
    return {name: found for name, found in drawn.items() if found}


register(Figure("throughput", throughput.TITLE, throughput.caption, throughput.render, charted=True))
register(Figure("grants", grants.TITLE, grants.caption, grants.render))
register(Figure("latency", latency.TITLE, latency.caption, latency.render, of="exchanges"))
