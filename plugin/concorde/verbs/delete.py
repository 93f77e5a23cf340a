"""DEL: take away what ADD made, any number of times, also when nobody knows the pod's namespace any more.

A pod must be able to end whatever became of the ledger. Where it is missing or damaged, what the kernel has
of the attachment is known by its names, and a damaged file is left as it is, for `rebuild`.
"""

from __future__ import annotations

from .. import enforcements, links, names, rtnetlink
from ..configuration import Identity
from ..locks import AttachmentLock, where_ours
from ..node import attachments
from ..state_files import WhereWhole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..leases import Lease
    from ..node.ledger import Ledger
    from ..node.records import Key
    from ..requests import Request


def delete(request: Request) -> None:
    """Detach the pod. Raises CniError, tools.CommandError.

    Only the network's identity is read: DEL must not fail because, say, flannel's file is gone.
    """
    network = Identity(request.document)
    take_over(network)
    release(network, request.container, request.interface, request.netns)


def release(network: Identity, container: str, interface: str, netns: str, stays: bool = False) -> None:
    """Remove the attachment's shaping, link and row, whichever of them exist.

    With `stays` the pod goes on, with the interface that another plugin made for it, and without a promise.
    The row goes last: whatever a kill leaves behind is still written down. Raises tools.CommandError.
    """
    key = network.name, container, interface
    with where_ours(lambda: AttachmentLock(network.directory, container, interface)):
        veth = names.host_veth(*key)
        # Nothing passes from now on, for the guard may be gone before the link is.
        rtnetlink.take_down(veth)
        with links.Removal(veth):
            # Not above: loading SQLite takes 4 ms, which pass while the kernel deletes the link.
            book, lease = _found(network, key)
            if book is not None and lease is not None:
                where = netns if lease.link is not None or _is_within(book, key, lease, netns) else ""
                enforcements.load(lease.terms.enforcement).remove(network, lease, where)
            attachments.withdraw(book, network, container, interface, stays)
        if book is not None:
            _drop(book, key, veth)


def _is_within(book: Ledger, key: Key, lease: Lease, netns: str) -> bool:
    """Whether the pod of an interface that another plugin made is still in its namespace, and no other."""
    held = bool(netns) and lease.terms.rate is not None
    return held and attachments.is_within(book, key, netns)


def opened(network: Identity) -> Ledger | None:
    """The node's ledger, if it is there and whole."""
    from ..node import ledger

    with WhereWhole():
        return ledger.opened(network.node_directory)
    return None


def _drop(book: Ledger, key: Key, veth: str) -> None:
    with WhereWhole(), book:
        book.drop(key, veth)


def _found(network: Identity, key: Key) -> tuple[Ledger | None, Lease | None]:
    book = opened(network)
    with WhereWhole():
        return book, book.lease(key) if book is not None else None
    return book, None


def take_over(network: Identity) -> None:
    """What a version before left, as far as it can be trusted."""
    with WhereWhole():
        attachments.take_over(network.state)
