"""The study of the paper's five interfaces."""

from __future__ import annotations

import os

from bench.console import values
from bench.console.verb import DURATION, MANY, choice, study_verb


def interfaces() -> list[str]:
    """Return the places of a datapath at which it measures."""
    return values.described(os.path.join(values.SCENARIOS, "places"))


VERB = study_verb(
    "places",
    "Measure at which interface bandwidth can be guaranteed: what the paper's section 3.2 argues.",
    choice(
        "place",
        MANY,
        "physical, vtep, bridge, bridge-veth, eth0, node; may be repeated (default: all)",
        interfaces,
    ),
    DURATION,
    alone="place",
)
