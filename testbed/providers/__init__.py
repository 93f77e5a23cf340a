"""Where nodes come from: namespaces, SSH, virtual machines, helpers in clusters; one package a provider."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from testbed.access.clocks import Clock
from testbed.access.place import Node, Place
from testbed.links.segments import Device
from testbed.links.trunks import Running
from testbed.scenario.addressing import Found
from testbed.scenario.links import Link


class Provider(ABC):
    """Supplies the nodes of one scenario, joined by the underlay.

    What a provider does not say is as for machines that were there before, with the links between them.
    """

    nodes: Mapping[str, Node] = {}  # those that are up, by name
    hops: Sequence[Place] = ()  # what nodes' packets pass through between them, if it is the provider's own
    trunks: Sequence[Running] = ()  # what joins the zones, as it runs, if it makes links (ProviderKind)
    devices: Mapping[str, Device] = {}  # those of the scenario, as they run, if it makes links
    hosts: Sequence[Place] = ()  # what nodes run on, if it is within reach and they do not see how busy it is

    def counters(self) -> Iterable[tuple[Link, str, str]]:
        """Return where it is counted what each direction of a link lets pass: a place, and a device there.

        None, where others' switches join the nodes.
        """
        return ()

    def clocks(self) -> Mapping[str, Clock]:
        """Compare the nodes' clocks with ours, now; without those that have ours."""
        return {}

    @abstractmethod
    def up(self) -> Found:
        """Bring up the nodes and the underlay, and return what they have that was there before.

        Raises a RuntimeError that says what failed.
        """

    def settle(self, networks: Sequence[Place]) -> None:  # noqa: B027 (most leave all as it is)
        """Let traffic wait for its class on the nodes, what joins them, and in these networks within them.

        Only where nodes share processors; machines of their own stay as they are. Raises CommandError.
        """

    @abstractmethod
    def down(self) -> None:
        """Remove everything this provider made, and nothing else."""


@runtime_checkable
class Together(Protocol):
    """A provider all of whose nodes have one kernel: one process can have sockets in all their networks."""

    @property
    def hub(self) -> Place:
        """Where such a process is to run. Raises RuntimeError if the nodes are not up."""

    def inside(self, place: Place) -> str:
        """Return the path, at the hub, of the network namespace of a node, or of a pod on one.

        Raises LookupError for a place that has none there.
        """
