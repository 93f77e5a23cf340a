"""What makes pods of different nodes of a cluster reach each other; one module a kind of pod network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network
from typing import Protocol


class PodNetwork(Protocol):
    """One cluster's pod network, as it is made on the cluster's nodes."""

    def links(self, node: str) -> str:
        """Return the ``ip -batch`` text that makes a node's devices, routes and neighbours."""

    def forwarding(self, node: str) -> str:
        """Return the ``bridge -batch`` text that is run after that."""

    def files(self, node: str) -> Mapping[str, str]:
        """Return the files that a node then needs, by their paths; CNI plugins read them."""

    def devices(self, node: str) -> Sequence[str]:
        """Return the names of the devices that it makes on a node."""

    def routes(self, node: str) -> Sequence[IPv4Network]:
        """Return the networks that a node then has routes into."""
