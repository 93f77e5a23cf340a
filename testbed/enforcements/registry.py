"""Which enforcements there are: what makes each kind that a scenario's ``enforcement`` may name."""

from __future__ import annotations

from collections.abc import Callable

from testbed.enforcements.at_interface import AtInterface
from testbed.enforcements.bandwidth import BandwidthPlugin
from testbed.enforcements.enforcement import Enforcement
from testbed.enforcements.node import NodeEnforcement
from testbed.enforcements.none import NoEnforcement
from testbed.enforcements.pod import PodEnforcement
from testbed.scenario import enforcements
from testbed.scenario.addressing import Addressing
from testbed.scenario.enforcements import Kind

Make = Callable[[Addressing], Enforcement]

_known: dict[str, Make] = {
    "none": NoEnforcement,
    "pod": PodEnforcement,
    "node": NodeEnforcement,
    "bandwidth": BandwidthPlugin,
}


def register(kind: Kind, make: Make) -> None:
    """Make an enforcement known to scenarios and testbeds. Raises ValueError for a name that is taken."""
    enforcements.register(kind)
    _known[kind.name] = make


def of(addressing: Addressing) -> Enforcement:
    """Return what keeps a scenario's promises: its shaping at an interface, or its enforcement."""
    scenario = addressing.scenario
    return AtInterface(addressing) if scenario.shaping else _known[scenario.enforcement](addressing)
