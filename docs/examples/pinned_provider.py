"""A provider: nodes as namespaces, each with one processor of this machine, as small machines have."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from testbed.access.clocks import Clock
from testbed.access.place import Node, Place, Within
from testbed.assembly import CNI, ProviderKind, register_provider
from testbed.networks.trunks import Running
from testbed.providers import Provider
from testbed.providers.netns.provider import NetnsProvider
from testbed.scenario.addressing import Addressing
from testbed.scenario.found import Found


@dataclass(frozen=True)
class PinnedNode(Within):
    """A node whose commands, and all that they start, run on one processor."""

    processor: int
    cgroup: str = ""

    @property
    def entrance(self) -> list[str]:
        """How commands get from the node to its processor."""
        return ["taskset", "--cpu-list", str(self.processor)]


class PinnedProvider:
    """Makes nodes as ``netns`` does, and pins them in turn; see testbed.providers.Provider."""

    def __init__(self, addressing: Addressing) -> None:
        self._made = NetnsProvider(addressing)

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The nodes, by name."""
        processors = sorted(os.sched_getaffinity(0))
        return {
            name: PinnedNode(name, node, processors[index % len(processors)], node.cgroup)
            for index, (name, node) in enumerate(self._made.nodes.items())
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


def make(addressing: Addressing, source: str, _clusters_exist: bool) -> Provider:
    """Return the provider; it has no source."""
    if source:
        raise LookupError(f"--provider pinned:{source}: nodes are made from nothing: --provider pinned")
    return PinnedProvider(addressing)


register_provider("pinned", ProviderKind(make, {"cni": CNI}, makes_links=True))
