"""Which enforcements there are: described networks, and those made in code that are registered by name."""

from __future__ import annotations

from collections.abc import Callable

from testbed.enforcements.at_interface import AtInterface
from testbed.enforcements.enforcement import Enforcement
from testbed.scenario import enforcements
from testbed.scenario.addressing import Addressing
from testbed.scenario.enforcements import Kind

Make = Callable[..., Enforcement]  # of an Addressing, and of the kind's settings if it has any

MAKERS: dict[str, Make] = {}


def register(kind: Kind, make: Make) -> None:
    """Make an enforcement known to scenarios and testbeds. Raises ValueError for a name that is taken."""
    enforcements.register(kind)
    MAKERS[kind.name] = make


def of(addressing: Addressing) -> Enforcement:
    """Return what keeps a scenario's promises: its shaping at an interface, or its enforcement."""
    scenario = addressing.scenario
    if scenario.shaping:
        return AtInterface(addressing)
    named = scenario.enforcement if isinstance(scenario.enforcement, str) else ""
    handed = enforcements.KINDS.handed(named, scenario.settings)
    return MAKERS.get(named, Enforcement)(addressing, *handed)
