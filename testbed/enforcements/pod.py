"""The pod's own eth0 keeps the promise, by HTB there: the paper's Concorde."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from testbed.enforcements.concorde import Concorde
from testbed.enforcements.enforcement import Guarded, Up


@dataclass(frozen=True)
class PodEnforcement(Concorde):
    """See testbed.enforcements.enforcement.Enforcement."""

    installed: ClassVar[bool] = True
    in_plugin: ClassVar[str] = "pod"

    def guarded(self, up: Up) -> dict[str, Guarded]:
        """Return the eth0 of each pod with a guarantee."""
        promised = [name for name, pod in self.addressing.scenario.pods.items() if pod.guarantee is not None]
        return {f"pod {name}": Guarded(up.pods[name], up.pods[name].interface) for name in promised}
