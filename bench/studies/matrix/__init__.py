"""The same scenarios under one enforcement after another."""

from __future__ import annotations

from bench.console import values
from bench.console.verb import DURATION, MANY, SCENARIO, choice, flag, study_verb

VERB = study_verb(
    "matrix",
    "Compare enforcements: the same scenarios with each of them, in one table, figure and page.",
    choice(
        "scenario",
        MANY,
        f"{SCENARIO}; may be repeated (default: contmec, congested and latency)",
        values.scenarios,
    ),
    choice(
        "enforcement",
        MANY,
        "none, bandwidth, pod, node, or any other network; may be repeated (default: these)",
        values.networks,
    ),
    choice("repetitions", 1, "of each cell, in blocks: every cell once, in a random order"),
    choice("seed", 0, "of that order (default: 0)"),
    flag(
        "gate",
        "exit status 1 if a case that shall hold is violated, 3 if one of them is invalid, else 0",
    ),
    DURATION,
    alone="scenario",
)
