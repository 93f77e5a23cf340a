"""A provider: nodes as namespaces, each with few processors of this machine, as small machines have."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field

from testbed.access.place import Place, Within
from testbed.assembly import CNI, ProviderKind, register_provider
from testbed.providers import Provider
from testbed.providers.netns.provider import NetnsProvider
from testbed.scenario.addressing import Addressing, Found
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


class PinnedProvider(Provider):
    """Makes nodes as ``netns`` does, and pins them in turn."""

    def __init__(self, addressing: Addressing, settings: Pinned) -> None:
        self._made = NetnsProvider(addressing)
        self._each = settings.processors

    def up(self) -> Found:
        """Bring up the nodes and the switch."""
        found = self._made.up()
        turns = itertools.cycle(sorted(os.sched_getaffinity(0)))
        self.nodes = {
            name: PinnedNode(name, node, list(itertools.islice(turns, self._each)), node.cgroup)
            for name, node in self._made.nodes.items()
        }
        self.hops, self.trunks = self._made.hops, self._made.trunks
        return found

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
