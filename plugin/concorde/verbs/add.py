"""ADD: give a pod its interface (or take the one the chain made) and keep its promise there.

The order makes kills harmless: the row is written before the kernel is touched, so whatever exists is in
the ledger and DEL or GC finds it; and shaping comes before the interface is up, so not one packet of the
pod passes by its class.
"""

from __future__ import annotations

import os

from .. import enforcements, guarantees, links, names, pod_annotations, results, state_files
from ..cni import COMMAND_FAILED, TRY_AGAIN, CniError
from ..configuration import Configuration, invalid
from ..leases import Lease, Link
from ..locks import AttachmentLock, NodeLock
from ..node import attachments
from ..node.ledger import Ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..addresses import Subnet
    from ..enforcements import Enforcement
    from ..leases import Terms
    from ..node.records import Key
    from ..node.settings import Settings
    from ..requests import Request


def add(request: Request) -> dict[str, Any]:
    """Attach the pod and return the result; what fails is undone. Raises CniError, tools.CommandError."""
    configuration = Configuration(request.document)
    _require_order(configuration)
    if configuration.previous is not None:
        _attach(request, configuration, None, configuration.node_mtu())
        return results.of_previous(request.version, configuration.previous)
    subnet, mtu = configuration.subnet()
    lease, default = _attach(request, configuration, subnet, mtu)
    assert lease.link is not None
    return results.of_link(request.version, lease.link, request.netns, configuration.dns, default)


def _require_order(configuration: Configuration) -> None:
    """Read the network's list, unless nothing in its directory changed since it was found right.

    Raises CniError 7 and 108.
    """
    directory, mark = configuration.lists, f"{configuration.directory}/{state_files.ORDER}"
    newest = 0
    try:
        places = [directory, *(f"{directory}/{name}" for name in os.listdir(directory))]
        newest = max(os.stat(place).st_ctime_ns for place in places)
        if os.stat(mark).st_mtime_ns == newest:
            return
    except OSError:
        pass  # a first pod, or no lists
    from .. import chain

    chain.require(configuration)
    if os.path.lexists(configuration.directory):
        state_files.directory(configuration.directory)
        state_files.touch(mark)
        os.utime(mark, ns=(newest, newest))


def _attach(
    request: Request, configuration: Configuration, subnet: Subnet | None, mtu: int
) -> tuple[Lease, bool]:
    """The lease, and whether the pod's default route goes there."""
    enforcement = enforcements.load(configuration.enforcement)
    terms = guarantees.terms(configuration, mtu, enforcement.RESERVES, enforcement.RECEIVES)
    require_receiver(configuration, enforcement, terms)
    lease = Lease(request.container, request.interface, terms, None, request.pod)
    key = configuration.name, request.container, request.interface
    attachments.take_over(configuration.state)
    with AttachmentLock(configuration.directory, request.container, request.interface):
        settings = enforcement.on_uplink(configuration)
        lock = NodeLock(configuration.node_directory)
        book = Ledger(configuration.node_directory)
        with book:
            _look_around(configuration, settings, subnet, book)
            if subnet is not None:
                veth = names.host_veth(*key)
                address = book.next_address(configuration.name, subnet)
                lease.link = Link(request.interface, mtu, address, subnet, configuration.bridge, veth)
            book.add(configuration.name, lease)
        try:
            default = _install(configuration, lease, settings, book, lock, request.netns)
        except Exception as error:
            _undo(lease, book, key, error)
            raise
    return lease, default


def require_receiver(configuration: Configuration, enforcement: Enforcement, terms: Terms) -> None:
    """Have a pod wait whose promise of what it receives nobody would keep yet. Raises CniError 11."""
    absent = enforcement.absent(configuration) if terms.ingress is not None else ""
    if absent:
        raise CniError(TRY_AGAIN, f"{pod_annotations.path(pod_annotations.INGRESS)}: {absent}")


def _look_around(
    configuration: Configuration, settings: Settings | None, subnet: Subnet | None, book: Ledger
) -> None:
    """Before a network's first pods, and those of a new bridge or subnet. No other ADD pays for it."""
    if subnet is None:
        known = book.has_pods(configuration.name)
    else:
        known = book.has_pods_on(configuration.name, configuration.bridge)
        known = known and book.knows(configuration.name, subnet)
    if known:
        return
    from .. import bridges, surroundings

    if subnet is not None:
        bridges.require_ours(configuration, subnet, book)
    surroundings.require(configuration, settings, makes_bridge=subnet is not None)


def _install(
    configuration: Configuration,
    lease: Lease,
    settings: Settings | None,
    book: Ledger,
    lock: NodeLock,
    netns: str,
) -> bool:
    enforcement = enforcements.load(lease.terms.enforcement)
    link = lease.link
    entry = attachments.entry_of(configuration, lease, settings, netns)
    if not entry.host_interface:
        from ..chain import UNGUARDED

        raise invalid("prevResult", f"{lease.interface} has no end on the node: {UNGUARDED}")
    if link is not None:
        links.make(link, netns)
    attachments.enter(book, entry, settings, lock)
    try:
        enforcement.install(configuration, lease, entry, netns)
        return link is not None and links.configure(link, netns, configuration.default_route)
    except Exception:
        attachments.withdraw(book, configuration, lease.container, lease.interface)
        raise


def _undo(lease: Lease, book: Ledger, key: Key, cause: Exception) -> None:
    # Should this fail too, the row stays behind, and with it the way for DEL or GC to finish the job.
    try:
        if lease.link is not None:
            links.remove(lease.link.host_veth)
        with book:
            book.drop(key)
    except Exception as error:
        raise CniError(COMMAND_FAILED, f"{cause}; undoing it failed: {error}") from cause
