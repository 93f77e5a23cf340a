"""How long the rest of a study will take."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from testbed.scenario import Scenario


def traffic_s(scenario: Scenario, repetitions: int | None = None) -> float:
    """Return how long a scenario's traffic flows, all repetitions together or so many, in seconds."""
    return scenario.duration * (scenario.measurement.repetitions if repetitions is None else repetitions)


def left_s(planned: Sequence[float], took: Sequence[float | None], number: int) -> float:
    """Return the seconds that the cases from ``number`` on will take that did not take any yet.

    Each takes its traffic, and beyond that what those before took on average: nothing, before the first.
    """
    beyond = [real - plan for plan, real in zip(planned, took, strict=True) if real is not None]
    each = fmean(beyond) if beyond else 0.0
    return sum(
        max(plan + each, 0.0)
        for plan, real in zip(planned[number:], took[number:], strict=True)
        if real is None
    )


def words(seconds: float) -> str:
    """Return a time as people estimate it: ``about 40 s``, ``about 4 min``, ``about 2 h 10 min``."""
    if seconds < 60:
        return f"about {max(round(seconds / 5), 1) * 5} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"about {minutes} min"
    hours, minutes = divmod(round(minutes / 10) * 10, 60)
    return f"about {hours} h {minutes} min" if minutes else f"about {hours} h"
