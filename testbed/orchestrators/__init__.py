"""What turns a pod of a scenario into a running one: we by CNI, our own Kubernetes, clusters that exist."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from testbed.access.components import Component
from testbed.access.place import InNamespace, PodPlace
from testbed.kubernetes.client import Client
from testbed.scenario.addressing import Found


class Orchestrator(ABC):
    """Runs the pods of one scenario on nodes that are up.

    What an orchestrator does not say is as where the testbed makes all there is, and pods are network
    namespaces, no more.
    """

    overlay: str | None = None  # what makes the entries between the nodes, if not the testbed does, in words
    joins: Collection[str] = ()  # the clusters whose networks' daemons it starts itself: they ask an API
    serves = False  # whether it serves the scenario's services
    names = False  # whether it has names for them, too
    brings_containers = False  # whether containers come with pods; else ``containers_from`` is given networks
    pods: Mapping[str, PodPlace] = {}  # those that run, by name
    networks: Mapping[str, PodPlace] = {}  # the pods', by their names, entered with the rights of nodes' root
    add_s: Mapping[str, float] = {}  # how long the ADD of each pod took; nothing where others call plugins

    @property
    def facts(self) -> Mapping[str, Any]:
        """What is known of clusters that are not the testbed's own, for the recording."""
        return {}

    @property
    def serving(self) -> Sequence[Component]:
        """The programs that serve the scenario's services; nothing where it does not."""
        return []

    @property
    def clients(self) -> Sequence[Client]:
        """What asks the clusters' APIs; nothing where there are none."""
        return []

    @abstractmethod
    def up(self, progress: Callable[[str], None], without: Collection[str] = ()) -> Found:
        """Start the pods of the scenario, and return what clusters that exist turned out to have.

        ``without`` are those that shall come later, if at all. On failure nothing of it stays. Raises a
        RuntimeError that says which pod was refused and why.
        """

    @abstractmethod
    def add(self, name: str) -> None:
        """Start a pod that is not there. Raises a RuntimeError that says why it was refused."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """End a pod, and all that was made for it. Raises RuntimeError."""

    def restart_agents(self, node: str) -> Sequence[str]:
        """End what runs on a node for its pods' networks, start it again, wait for it; return who that was.

        Nothing, where nothing runs, or where that is other people's. Raises RuntimeError.
        """
        return []

    def containers_from(self, containers: Mapping[str, InNamespace]) -> Mapping[str, PodPlace]:
        """Return the scenario's containers as they shall be, given network namespaces for them."""
        return containers

    @abstractmethod
    def check(self) -> list[str]:
        """Return, in words, every way in which a pod's network is not as it was when the pod started."""

    @abstractmethod
    def down(self) -> None:
        """Remove every pod; the nodes are about to end. Does not fail."""
