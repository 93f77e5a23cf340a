"""Scenarios of this repository, as the testbed's parts are given them."""

from __future__ import annotations

from testbed.scenario import load
from testbed.scenario.addressing import Addressing
from tests.paths import ROOT


def addressed(name: str, *overrides: str, scale: float = 1.0) -> Addressing:
    """Return the addressing of a scenario."""
    return Addressing(load(ROOT / "scenarios" / f"{name}.yaml", overrides, scale=scale))
