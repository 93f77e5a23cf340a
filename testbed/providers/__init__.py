"""Where nodes come from; one package a provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from testbed.access.clocks import Clock
from testbed.access.place import Node, Place
from testbed.links.trunks import Running
from testbed.scenario.found import Found


class Provider(Protocol):
    """Supplies the nodes of one scenario, joined by the underlay."""

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The nodes that are up, by name."""

    def clocks(self) -> Mapping[str, Clock]:
        """Compare the nodes' clocks with ours, now; without those that have ours."""

    @property
    def hops(self) -> Sequence[Place]:
        """What the nodes' packets pass through between them, if it is the provider's own."""

    @property
    def trunks(self) -> Sequence[Running]:
        """What joins the zones, as it runs; none for a provider that makes no links (ProviderKind)."""

    @property
    def hosts(self) -> Sequence[Place]:
        """What the nodes run on, if it is within reach and they do not see how busy it is."""

    def up(self) -> Found:
        """Bring up the nodes and the underlay, and return what they have that was there before.

        Raises a RuntimeError that says what failed.
        """

    def settle(self, networks: Sequence[Place]) -> None:
        """Let traffic wait for its class on the nodes, what joins them, and in these networks within them.

        Only where nodes share processors; machines of their own stay as they are. Raises CommandError.
        """

    def down(self) -> None:
        """Remove everything this provider made, and nothing else."""


class ThereBefore:
    """What providers have in common whose machines, with the links between them, were there before."""

    hops: Sequence[Place] = ()  # whatever there is, it is not ours
    trunks: Sequence[Running] = ()
    hosts: Sequence[Place] = ()  # none that is known of: nodes may be machines of their own

    def settle(self, networks: Sequence[Place]) -> None:
        """Leave everything as it is."""


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
