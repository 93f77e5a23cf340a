"""A provider: nodes as namespaces, each with few processors of this machine, as small machines have."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field

from testbed.access.clocks import Clock
from testbed.access.place import Node, Place, Within
from testbed.assembly import CNI, ProviderKind, register_provider
from testbed.links.trunks import Running
from testbed.providers import Provider
from testbed.providers.netns.provider import NetnsProvider
from testbed.scenario.addressing import Addressing
from testbed.scenario.found import Found
from testbed.scenario.words import Part


class Pinned(Part):
    """A scenario's settings.provider.pinned."""

    processors: int = Field(1, ge=1, description="of each node, if the machine has as many")


@dataclass(frozen=True)
class PinnedNode(Within):
    """A node whose commands, and all that they start, run on some processors."""

    processors: Sequence[int]
    cgroup: str = ""

    @property
    def entrance(self) -> list[str]:
        """How commands get from the node to its processors."""
        return ["taskset", "--cpu-list", ",".join(map(str, self.processors))]


class PinnedProvider:
    """Makes nodes as ``netns`` does, and pins them in turn; see testbed.providers.Provider."""

    def __init__(self, addressing: Addressing, settings: Pinned) -> None:
        self._made = NetnsProvider(addressing)
        self._each = settings.processors

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The nodes, by name."""
        turns = itertools.cycle(sorted(os.sched_getaffinity(0)))
        return {
            name: PinnedNode(name, node, list(itertools.islice(turns, self._each)), node.cgroup)
            for name, node in self._made.nodes.items()
        }

    @property
    def hops(self) -> Sequence[Place]:
        """The switch."""
        return self._made.hops

    @property
    def trunks(self) -> Sequence[Running]:
        """What joins zones."""
        return self._made.trunks

    @property
    def hosts(self) -> Sequence[Place]:
        """Nothing that they do not see."""
        return self._made.hosts

    def clocks(self) -> Mapping[str, Clock]:
        """None: all have this machine's."""
        return self._made.clocks()

    def up(self) -> Found:
        """Bring up the nodes and the switch."""
        return self._made.up()

    def settle(self, networks: Sequence[Place]) -> None:
        """Let traffic wait for its class."""
        self._made.settle(networks)

    def down(self) -> None:
        """Take them down."""
        self._made.down()


def make(addressing: Addressing, source: str, _clusters_exist: bool, settings: Pinned) -> Provider:
    """Return the provider; it has no source."""
    if source:
        raise LookupError(f"--provider pinned:{source}: nodes are made from nothing: --provider pinned")
    return PinnedProvider(addressing, settings)


register_provider("pinned", ProviderKind(make, {"cni": CNI}, makes_links=True, settings=Pinned()))
