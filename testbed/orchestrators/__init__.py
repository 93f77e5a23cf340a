"""What turns a pod of a scenario into a running pod; one module an orchestrator."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from testbed.access.place import InNamespace, PodPlace
from testbed.kubernetes.client import Client
from testbed.scenario.found import Found


class Orchestrator(Protocol):
    """Runs the pods of one scenario on nodes that are up."""

    @property
    def overlay(self) -> str | None:
        """What makes the entries between the nodes, if not the testbed does, in words."""

    @property
    def joins(self) -> Collection[str]:
        """The clusters whose networks' daemons it starts itself, for they ask the cluster's API."""

    @property
    def brings_containers(self) -> bool:
        """Whether containers come with the pods; else ``containers_from`` is given networks for them."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """What is known of clusters that are not the testbed's own, for the recording."""

    @property
    def pods(self) -> Mapping[str, PodPlace]:
        """The running pods, by name."""

    @property
    def networks(self) -> Mapping[str, PodPlace]:
        """The pods' networks by the pods' names, entered with the rights of their nodes' root."""

    @property
    def clients(self) -> Sequence[Client]:
        """What asks the clusters' APIs; nothing where there are none."""

    @property
    def add_s(self) -> Mapping[str, float]:
        """How long the ADD of each pod took, by its name, in seconds; nothing where others call it."""

    def up(self, progress: Callable[[str], None], without: Collection[str] = ()) -> Found:
        """Start the pods of the scenario, and return what clusters that exist turned out to have.

        ``without`` are those that shall come later, if at all. On failure nothing of it stays. Raises a
        RuntimeError that says which pod was refused and why.
        """

    def add(self, name: str) -> None:
        """Start a pod that is not there. Raises a RuntimeError that says why it was refused."""

    def remove(self, name: str) -> None:
        """End a pod, and all that was made for it. Raises RuntimeError."""

    def restart_agents(self, node: str) -> Sequence[str]:
        """End what runs on a node for its pods' networks, start it again, wait for it; return who that was.

        Nothing, where nothing runs, or where that is other people's. Raises RuntimeError.
        """

    def containers_from(self, containers: Mapping[str, InNamespace]) -> Mapping[str, PodPlace]:
        """Return the scenario's containers as they shall be, given network namespaces for them."""

    def check(self) -> list[str]:
        """Return, in words, every way in which a pod's network is not as it was when the pod started."""

    def down(self) -> None:
        """Remove every pod; the nodes are about to end. Does not fail."""
