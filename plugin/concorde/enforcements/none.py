"""Enforcement `none`: the promise is written down and nothing keeps it. The baseline of every experiment."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..configuration import Identity
    from ..leases import Lease
    from ..node.records import Entry

RESERVES = False
RECEIVES = False
TOOLS: tuple[str, ...] = ()
QDISCS: tuple[str, ...] = ()


def on_uplink(network: Identity) -> None:
    """Nothing is promised there."""


def absent(network: Identity) -> str:
    """Nothing has to run."""
    return ""


def install(network: Identity, lease: Lease, entry: Entry, netns: str) -> None:
    """Nothing to install."""


def remove(network: Identity, lease: Lease, netns: str) -> None:
    """Nothing to remove."""


def check(network: Identity, lease: Lease, netns: str) -> None:
    """Nothing to check."""
