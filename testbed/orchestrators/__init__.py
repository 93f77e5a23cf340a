"""What turns a pod of a scenario into a running pod; one module an orchestrator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from testbed.nodes import Node, Place
from testbed.orchestrators.cni import CniOrchestrator
from testbed.scenario import Scenario


class PodPlace(Place, Protocol):
    """A running pod."""

    @property
    def address(self) -> str:
        """Its IPv4 address."""

    @property
    def host_interface(self) -> str:
        """The node's end of its veth pair."""


class Orchestrator(Protocol):
    """Runs the pods of one scenario on nodes that are up."""

    @property
    def pods(self) -> Mapping[str, PodPlace]:
        """The running pods, by name."""

    def up(self) -> None:
        """Start every pod of the scenario. Raises a RuntimeError that says which pod was refused and why."""

    def check(self) -> list[str]:
        """Return, in words, every way in which a pod's network is not as it was when the pod started."""

    def down(self) -> None:
        """Remove every pod."""


ORCHESTRATORS: Mapping[str, Callable[[Scenario, Mapping[str, Node]], Orchestrator]] = {
    "cni": CniOrchestrator,
}
