"""What the rest of the testbed needs of a running pod."""

from __future__ import annotations

from typing import Protocol

from testbed.access.place import Place


class PodPlace(Place, Protocol):
    """A running pod."""

    @property
    def address(self) -> str:
        """Its IPv4 address, by which its own node's reach it."""

    @property
    def published(self) -> str:
        """The address at which it is reached from other nodes; empty if that is its own."""

    @property
    def interface(self) -> str:
        """The interface by which it sends."""

    @property
    def host_interface(self) -> str:
        """The node's end of its veth pair."""
