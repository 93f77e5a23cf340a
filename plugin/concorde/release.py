"""Giving back what one attachment holds: the common part of DEL and GC."""

from __future__ import annotations

from . import enforcements, links, names, rtnetlink
from .configuration import Identity
from .locks import AttachmentLock
from .node import attachments


def release(network: Identity, container: str, interface: str, netns: str) -> None:
    """Remove the attachment's shaping, link and lease, whichever of them exist.

    The lease goes last: whatever a kill leaves behind is still written down. Raises run.CommandError.
    """
    with AttachmentLock(network.directory, container, interface):
        # Nothing passes from now on, for the guard may be gone before the link is.
        veth = names.host_veth(network.name, container, interface)
        rtnetlink.take_down(veth)
        removal = links.Removal(veth)
        # Not above: loading SQLite takes 4 ms, which pass while the kernel deletes the link.
        from .store import Store

        store = Store(network.directory)
        lease = store.find(container, interface)
        if lease is not None:
            enforcements.load(lease.terms.enforcement).remove(network, lease, netns)
        attachments.withdraw(network, container, interface)
        removal.finish()
        store.drop(container, interface)
