"""Giving back what one attachment holds: the common part of DEL and GC."""

from __future__ import annotations

from . import enforcements, links, names
from .configuration import Identity
from .locks import AttachmentLock
from .store import Store


def release(network: Identity, store: Store, container: str, interface: str, netns: str) -> None:
    """Remove the attachment's shaping, link and lease, whichever of them exist.

    The lease goes last: whatever a kill leaves behind is still written down. Raises run.CommandError.
    """
    with AttachmentLock(network.directory, container, interface):
        lease = store.find(container, interface)
        if lease is not None:
            enforcements.load(lease.terms.enforcement).remove(lease, netns)
        links.remove(names.host_veth(network.name, container, interface))
        store.drop(container, interface)
