"""How a promise is kept: one module per way, chosen by the configuration key `enforcement`.

A way is five functions on a network's configuration and a lease; a further one is a module beside these and
a name in configuration.ENFORCEMENTS.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from ..configuration import Configuration, Identity
    from ..leases import Lease
    from ..node.settings import Settings
    from ..node.terms import Entry

    class Enforcement(Protocol):
        """What the verbs need."""

        def on_uplink(self, network: Configuration) -> Settings | None:
            """How promises are kept on the node's uplink; None if not there. Raises CniError 7."""

        def prepare(self, network: Configuration, lease: Lease, netns: str) -> None:
            """Start ahead the tools that install(), and entering the attachment, will want."""

        def install(self, network: Configuration, lease: Lease, entry: Entry, netns: str) -> None:
            """Enforce the lease's rate before its interface carries traffic. All or nothing."""

        def remove(self, network: Identity, lease: Lease, netns: str) -> None:
            """Undo what would outlive the pod's interface; `netns` is empty when nobody knows it."""

        def check(self, network: Configuration, lease: Lease, netns: str) -> None:
            """Raise CniError 104 when the kernel no longer enforces what install() set."""


def load(name: str) -> Enforcement:
    """The module of that name; only it is imported."""
    if name == "pod":
        from . import pod

        return pod
    if name == "node":
        from . import node

        return node
    from . import none

    return none
