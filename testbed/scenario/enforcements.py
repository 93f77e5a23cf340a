"""The kinds of enforcement, as far as rules and arithmetic need them: what one must know, and what it counts.

How one keeps promises on nodes is ``testbed.enforcements``.
"""

from __future__ import annotations

from dataclasses import dataclass

from testbed.scenario import links
from testbed.scenario.model import Scenario
from testbed.scenario.names import ENFORCEMENTS


@dataclass(frozen=True)
class Kind:
    """A kind of enforcement."""

    name: str  # as a scenario's ``enforcement`` says it
    promises: bool = False  # whether pods get what they were promised, at least where links have room
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


def shall_hold(scenario: Scenario) -> bool:
    """Tell whether a scenario's enforcement promises that its guarantees hold.

    Without a share of the links, only where the links have no rate: one that has may be full. Nobody shares
    out the trunks of zones.
    """
    kind = of(scenario)
    if not kind.promises or any(links.contested(scenario)):
        return False
    return kind.shares_links or all(links.rate_of(scenario, node) is None for node in scenario.nodes)


# All four are judged by what a class on the pod's eth0 lets through, whatever they do to get there.
register(Kind("none"))
register(Kind("pod", promises=True))
register(Kind("node", promises=True, shares_links=True))
register(Kind("bandwidth"))
