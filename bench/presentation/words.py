"""What terminal and page say in the same words, and words from outside, as they may be shown."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from bench.analysis.summary import PhaseSummary, SamplesSummary
from testbed.scenario.texts import escaped


def judged_in(name: str, phase: PhaseSummary) -> str:
    """Return a phase's name, with the repetition that it was judged by if that is one of several."""
    judged = phase.judged
    if judged is phase or len(phase.repetitions) < 2:
        return name
    return f"{name}, rep. {next(one.repetition for one in phase.repetitions if one is judged)}"


def lowest(phases: Iterable[SamplesSummary]) -> str:
    """Return what a column is called that shows the ``lowest_bps`` of each of these."""
    kinds = {one.shows_minimum for one in phases}
    return "min/p01" if len(kinds) > 1 else "min" if True in kinds else "p01"


def low(samples: SamplesSummary) -> str:
    """Return how many samples are low, and how many of these the machine accounts for; empty if none is."""
    if not samples.low:
        return ""
    doubtful = samples.low_doubtful or 0
    if doubtful == samples.low:
        which = {1: "it", 2: "both"}.get(doubtful, "all")
    else:
        which = f"{doubtful} of them" if doubtful else "none"
    return f"{samples.low} of {samples.samples} low, and the machine accounts for {which}"


def verbatim(words: str, style: str = "") -> Text:
    """Return words from outside as Rich shows them, in tables and elsewhere."""
    return Text(escaped(words), style)
