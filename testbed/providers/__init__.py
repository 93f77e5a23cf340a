"""Where nodes come from; one package a provider."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from testbed.nodes import Node, Place
from testbed.providers.netns import NetnsProvider
from testbed.scenario import Scenario


class Provider(Protocol):
    """Supplies the nodes of one scenario, joined by the underlay."""

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The nodes that are up, by name."""

    @property
    def between(self) -> Sequence[Place]:
        """What the nodes' packets pass through on the same machine, if it is the provider's own."""

    def up(self) -> None:
        """Bring up the nodes and the underlay. Raises a RuntimeError that says what failed."""

    def down(self) -> None:
        """Remove everything this provider made, and nothing else."""


PROVIDERS: Mapping[str, Callable[[Scenario], Provider]] = {"netns": NetnsProvider}
