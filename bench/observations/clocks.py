"""How far are the nodes' clocks apart, and how late does a node hear that it is to begin?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bench.observations.observation import Observation, Scene, Seen
from bench.recording.records import Fault
from testbed.access.clocks import skew

if TYPE_CHECKING:
    from testbed.access.clocks import Clock


class Clocks(Observation):
    """Asks every node that has a clock of its own."""

    name = "clocks"

    def after(self, scene: Scene, before: Any) -> Seen:
        """Return what is wrong with the clocks for samples as long as the scenario's."""
        compared, interval = scene.testbed.clocks(), scene.scenario.measurement.interval
        unsound = [Fault(kind="measurement", text=text) for text in faults(compared, interval)]
        return Seen(faults=unsound, notes=notes(compared, interval))


def notes(clocks: Mapping[str, Clock], interval: float) -> list[str]:
    """Say if the nodes' clocks are further apart than a sample lasts.

    Nothing measured here is told by them, but their logs cannot be laid beside the samples as they are.
    """
    apart = skew(clocks.values())
    if apart <= interval:
        return []
    return [f"the nodes' clocks are {apart:.3f} s apart, more than a sample of {interval:g} s"]


def faults(clocks: Mapping[str, Clock], interval: float) -> list[str]:
    """Say of which nodes it is not known to a sample when they began to send."""
    return [
        f"{name} hears up to {clock.uncertainty_s:.3f} s late that it is to send, more than a sample of "
        f"{interval:g} s"
        for name, clock in clocks.items()
        if clock.uncertainty_s > interval
    ]
