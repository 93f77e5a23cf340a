"""Enforcement `node`: a class for each guarantee in one tree on the node's uplink, shared by all networks.

There the pod's traffic meets all that could crowd it out, so the class is a reservation: a pod gets its
guarantee whatever others send, and idle capacity beyond it. A ceiling is kept on the pod's own interface, as
with enforcement `pod`, and so holds between two pods of one node too, whose traffic never sees the uplink.
"""

from __future__ import annotations

from .. import addresses, names, run
from ..cni import CHECK_FAILED, NOT_AVAILABLE, UNTRUSTED, UNUSABLE, CniError, shown
from ..configuration import invalid
from ..locks import NodeLock, NoLock
from ..node import htb, kernel
from ..node.settings import Settings
from ..node.terms import Entry, uplink_rate
from ..results import entries_of, node_ends
from . import pod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..configuration import Configuration, Identity
    from ..leases import Lease
    from ..node.ledger import Ledger

# What prepare() leaves for install(): the tools it started hold the lock from the moment that is taken.
_ready: list[tuple[Settings, NodeLock]] = []


def prepare(network: Configuration, lease: Lease, netns: str) -> None:
    """Read the keys, open the lock and start tc and nft."""
    settings = Settings(network.document)
    _ready[:] = [(settings, NodeLock(network.node_directory))]
    run.prepare("tc")
    run.prepare("nft")
    pod.prepare(network, lease, netns)


def install(network: Configuration, lease: Lease, netns: str) -> None:
    """Write the promise into the ledger if it fits, then into the kernel."""
    from ..node import ledger  # before the lock: others wait for it

    settings, lock = _ready.pop()
    entry = entry_of(network, lease, settings)
    with lock:
        _enter(ledger.Ledger(network.node_directory), settings, entry)
    try:
        pod.install(network, lease, netns)
        if entry.rate:
            pod.shorten_packets(lease.interface, htb.largest_packet(entry.rate), netns)
    except Exception:
        withdraw(network, lease.container, lease.interface)
        raise


def remove(network: Identity, lease: Lease, netns: str) -> None:
    """Take the attachment out of kernel and ledger, in this order."""
    pod.remove(network, lease, netns)
    withdraw(network, lease.container, lease.interface)


def check(network: Configuration, lease: Lease, netns: str) -> None:
    """Compare ledger, tree and tables with the lease. Raises CniError 104 and 7, run.CommandError."""
    from ..node import ledger
    from ..node.differences import differences
    from ..node.observe import observe

    pod.check(network, lease, netns)
    settings = Settings(network.document)
    expected = entry_of(network, lease, settings)
    with NodeLock(network.node_directory):
        book = ledger.Ledger(network.node_directory)
        tree, entries = book.tree(), book.entries()
        found = next((entry for entry in entries if entry.key == expected.key), None)
        if tree is None or found is None:
            raise CniError(CHECK_FAILED, f"the node's ledger has no entry for {expected.who}")
        state = observe(tree.uplink)
    if tree != settings.tree:
        raise CniError(CHECK_FAILED, f"the node's ledger says {vars(tree)}; expected {vars(settings.tree)}")
    # Who it is, for people, and the class's number are not the configuration's to say.
    said = {**vars(found), "pod": expected.pod, "minor": expected.minor}
    if said != vars(expected):
        raise CniError(CHECK_FAILED, f"the node's ledger says {said}; expected {vars(expected)}")
    for difference in differences(tree, entries, state):
        if difference.key in (None, expected.key):
            raise CniError(CHECK_FAILED, difference.text)


def status(network: Configuration) -> None:
    """Could a promise be kept now? Raises CniError 50 in words, and 7 for a bad key."""
    from ..node import ledger
    from ..node.differences import differences
    from ..node.observe import observe

    settings = Settings(network.document)
    run.find("nft")
    with NodeLock(network.node_directory):
        book = ledger.Ledger(network.node_directory)
        tree, entries = book.tree(), book.entries()
        state = observe(settings.tree.uplink)
    try:
        book.require(settings.tree, network.name)
        if not settings.take_over:
            kernel.require_ours(settings.tree.uplink, state.root, False)
    except CniError as error:
        raise CniError(NOT_AVAILABLE, error.msg) from error
    # Before the first ADD nothing is there; a configuration that may change is taken on by the next ADD.
    found = differences(tree, entries, state) if tree == settings.tree else []
    if tree is not None and found:
        texts = [difference.text for difference in found]
        raise CniError(NOT_AVAILABLE, f"{texts[0]} (differences: {len(texts)})", "\n".join(texts))


def entry_of(network: Configuration, lease: Lease, settings: Settings) -> Entry:
    """The attachment's entry, as yet without a class. Raises CniError 7 when nothing tells its packets."""
    link, terms = lease.link, lease.terms
    mtu = network.node_mtu() if link is None else link.mtu
    if link is None:
        address, way, port = _of_previous(network.previous)
    else:
        address, way, port = link.address, link.bridge, link.host_veth
    guarantee = terms.guarantee
    if guarantee is not None and (address is None or not way):
        raise invalid("prevResult", "a guarantee needs an IPv4 address and the node's end of the interface")
    rate, ceil = 0, settings.tree.capacity
    if guarantee is not None:
        rate = uplink_rate(guarantee, network.count, mtu, settings.encapsulation)
        if terms.ceiling is not None:
            ceil = min(ceil, uplink_rate(terms.ceiling, network.count, mtu, settings.encapsulation))
        ceil = max(rate, ceil)
    return Entry(
        network.name, lease.container, lease.interface, lease.pod, address, way, port, guarantee, rate, ceil
    )


def withdraw(network: Identity, container: str, interface: str) -> None:
    """Take an attachment out of the kernel, then out of the ledger, if it is there. Raises CommandError.

    Without a ledger, or with a damaged one, the kernel's side is found by its names.
    """
    from ..database import existing
    from ..node import ledger

    directory = network.node_directory
    with _lock(directory):
        try:
            book = existing(ledger.path(directory), lambda: ledger.Ledger(directory))
            if book is not None:
                _leave(book, (network.name, container, interface))
                return
        except CniError as error:
            if error.code not in UNTRUSTED:
                raise
        _forget(network, container, interface)


def _leave(book: Ledger, key: tuple[str, str, str]) -> None:
    entry, tree = book.find(key), book.tree()
    if entry is None or tree is None:
        return
    try:
        kernel.leave(tree, entry, book.promised() - entry.rate)
    except run.CommandError:
        kernel.clear(tree, entry, [other for other in book.entries() if other.key != key])
    book.drop(key)


def _lock(directory: str) -> NodeLock | NoLock:
    """The node's lock, or none where its file is not ours."""
    try:
        return NodeLock(directory)
    except CniError as error:
        if error.code != UNUSABLE:
            raise
        return NoLock()


def _forget(network: Identity, container: str, interface: str) -> None:
    from ..node import remains

    address, _, port = _of_previous(network.document.get("prevResult"))
    ports = {names.host_veth(network.name, container, interface), port} - {""}
    remains.forget(ports, () if address is None else (address,))


def _enter(book: Ledger, settings: Settings, entry: Entry) -> None:
    former = book.tree()
    with book:
        book.admit(settings.tree, entry)
    try:
        if former is not None and former.uplink != settings.tree.uplink:
            kernel.abandon(former.uplink)
        _enforce(book, settings, entry, known=former == settings.tree, fresh=former is None)
    except Exception as error:
        if not isinstance(error, CniError):  # one of those comes before anything is touched
            others = [other for other in book.entries() if other.key != entry.key]
            kernel.clear(settings.tree, entry, others)
        with book:
            book.drop(entry.key)
            book.set_tree(former)
        raise


def _enforce(book: Ledger, settings: Settings, entry: Entry, known: bool, fresh: bool) -> None:
    if known:
        try:
            kernel.enter(settings.tree, entry, book.promised())
        except run.CommandError:
            known = False
    if not known:
        kernel.repair(settings.tree, book.entries(), take_over=settings.take_over, fresh=fresh)


def _of_previous(previous: Any) -> tuple[int | None, str, str]:
    """Address, way and port of an interface that other plugins made."""
    address = None
    for ip in entries_of(previous, "ips"):
        text = str(ip.get("address", "")).partition("/")[0]
        if address is None and "." in text:
            try:
                address = addresses.parse(text)
            except ValueError as error:
                raise invalid("prevResult.ips", f"{shown(text)} {error}") from error
    return (address, *node_ends(previous))
