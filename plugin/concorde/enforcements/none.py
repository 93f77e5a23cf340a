"""Enforcement `none`: the promise is written down and nothing keeps it. The baseline of every experiment."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..leases import Lease


def prepare(lease: Lease, netns: str) -> None:
    """Nothing to start."""


def install(lease: Lease, netns: str) -> None:
    """Nothing to install."""


def remove(lease: Lease, netns: str) -> None:
    """Nothing to remove."""


def check(lease: Lease, netns: str) -> None:
    """Nothing to check."""
