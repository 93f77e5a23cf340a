"""DEL: take away what ADD made, any number of times, also when nobody knows the pod's namespace any more.

A pod must be able to end whatever became of store and ledger. Where they are missing or damaged, what the
kernel has of the attachment is known by its names, and a damaged file is left as it is, for `rebuild`.
"""

from __future__ import annotations

from .. import enforcements, links, names, rtnetlink
from ..configuration import Identity
from ..locks import AttachmentLock, where_ours
from ..node import attachments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..leases import Lease
    from ..requests import Request
    from ..store import Store


def delete(request: Request) -> None:
    """Detach the pod. Raises CniError, tools.CommandError.

    Only the network's identity is read: DEL must not fail because, say, flannel's file is gone.
    """
    network = Identity(request.document)
    release(network, request.container, request.interface, request.netns)


def release(network: Identity, container: str, interface: str, netns: str, stays: bool = False) -> None:
    """Remove the attachment's shaping, link and lease, whichever of them exist.

    With `stays` the pod goes on, with the interface that another plugin made for it, and without a promise.
    The lease goes last: whatever a kill leaves behind is still written down. Raises tools.CommandError.
    """
    with where_ours(lambda: AttachmentLock(network.directory, container, interface)):
        veth = names.host_veth(network.name, container, interface)
        # Nothing passes from now on, for the guard may be gone before the link is.
        rtnetlink.take_down(veth)
        with links.Removal(veth):
            # Not above: loading SQLite takes 4 ms, which pass while the kernel deletes the link.
            store, lease = _found(network, container, interface)
            if lease is not None:
                where = netns if lease.link is not None or _is_within(network, lease, netns) else ""
                enforcements.load(lease.terms.enforcement).remove(network, lease, where)
            attachments.withdraw(network, container, interface, stays)
        if store is not None:
            _drop(store, container, interface, veth)


def _is_within(network: Identity, lease: Lease, netns: str) -> bool:
    """Whether the pod of an interface that another plugin made is still in its namespace, and no other."""
    held = bool(netns) and lease.terms.rate is not None
    return held and attachments.is_within(network, lease.container, lease.interface, netns)


def opened(network: Identity) -> Store | None:
    """The network's store, if it is there and whole."""
    from .. import store
    from ..database import usable

    return usable(store.path(network.directory), lambda: store.Store(network.directory))


def _drop(store: Store, container: str, interface: str, veth: str) -> None:
    from ..database import WhereWhole

    with WhereWhole():
        store.drop(container, interface)
    with WhereWhole():
        store.drop_port(veth)


def _found(network: Identity, container: str, interface: str) -> tuple[Store | None, Lease | None]:
    from ..database import WhereWhole

    with WhereWhole():
        store = opened(network)
        return store, store.find(container, interface) if store else None
    return None, None
