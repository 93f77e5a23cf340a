"""Which colour stands for what, in figures and pages: one place, so that a role has one colour everywhere.

Colours are those of Okabe and Ito, "Color Universal Design" (2008), which colour-blind people can tell apart,
without the yellow that vanishes on white paper and without black, in which promises are drawn. Markers tell
lines apart in grey, too.
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

from testbed.scenario import Scenario

# Of flows, then of requests, in the scenario's order. They begin again after the last one, with other
# markers: there are as many of either as have no divisor in common.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

DISTURBANCE = "#7A7A7A"  # of every disturbance, in any scenario
# Of the time of the disturbances; what disturbs in other company has the other one.
SHADES = ("#EEEEEE", "#DDDDDD")

# Of what lies in a cluster, in the order of the clusters: the colours above and their yellow, lightened to be
# written on. And of what lies outside of every one.
CLUSTERS = ("#9AD1F3", "#F3CB7A", "#7FCFB5", "#E3B6D0", "#F5EE9E", "#E9A577")
OUTSIDE = "#E4E4E4"

INK, MUTED, GRID = "#000000", "#595959", "#DDDDDD"
# Of the machine's bad moments, and of verdicts: as on pages of light paper (templates/style.css).
STALL, SATURATED = "#b00020", "#b86e00"
VERDICTS = {"held": "#00664a", "violated": "#a33c00", "invalid": "#5a4a00"}


class Look(NamedTuple):
    """What a line looks like."""

    colour: str
    marker: str


def look(place: int) -> Look:
    """Return the look of the one at a place, from 0, in the order of its kind."""
    return Look(COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)])


def looks(scenario: Scenario) -> dict[str, Look]:
    """Return the look of everything that a scenario sends, by label."""
    own = [transfer.label for transfer in chain(scenario.flows, scenario.requests)]
    others = [disturbance.label for disturbance in scenario.disturbances]
    return {
        **{label: look(place) for place, label in enumerate(own)},
        **{
            label: Look(DISTURBANCE, MARKERS[(len(own) + place) % len(MARKERS)])
            for place, label in enumerate(others)
        },
    }
