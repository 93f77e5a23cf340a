"""Has the kernel what was configured, still, after the traffic?"""

from __future__ import annotations

from typing import Any

from bench.observations.observation import Observation, Scene, Seen
from bench.recording.records import Fault


class Kernel(Observation):
    """Asks the testbed, which knows what it configured."""

    name = "kernel"
    at_once = False

    def after(self, scene: Scene, before: Any) -> Seen:
        """Return a fault for everything that is not as it was configured."""
        return Seen(faults=[Fault(kind="state", text=text) for text in scene.testbed.check()])
