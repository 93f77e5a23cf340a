"""The kinds of enforcement, as far as rules and arithmetic need them: what one must know, and what it counts.

How one keeps promises on nodes is ``testbed.enforcements``.
"""

from __future__ import annotations

from dataclasses import dataclass

from testbed.scenario.model import Scenario
from testbed.scenario.names import ENFORCEMENTS


@dataclass(frozen=True)
class Kind:
    """A kind of enforcement."""

    name: str  # as a scenario's ``enforcement`` says it
    counts_overhead: bool = False  # whether a guarantee counts what the pod network adds to each packet
    shares_links: bool = False  # whether it shares out the nodes' links, so that their rate must be known


_known: dict[str, Kind] = {}


def register(kind: Kind) -> None:
    """Let scenarios say a kind's name from now on. Raises ValueError for a name that is taken."""
    ENFORCEMENTS.add(kind.name)
    _known[kind.name] = kind


def of(scenario: Scenario) -> Kind:
    """Return the kind that a scenario's enforcement is."""
    return _known[scenario.enforcement]


# All four are judged by what a class on the pod's eth0 lets through, whatever they do to get there.
register(Kind("none"))
register(Kind("pod"))
register(Kind("node", shares_links=True))
register(Kind("bandwidth"))
