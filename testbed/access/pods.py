"""What the rest of the testbed needs of a running pod."""

from __future__ import annotations

from typing import Protocol

from testbed.access.place import Place


class PodPlace(Place, Protocol):
    """A running pod."""

    @property
    def address(self) -> str:
        """Its IPv4 address."""

    @property
    def host_interface(self) -> str:
        """The node's end of its veth pair."""
