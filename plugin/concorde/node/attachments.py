"""What the node knows of an attachment: its row in the ledger, its class if it has one, its port's guard.

All attachments are entered, whatever the enforcement: a promise is worth what the least of its neighbours
cannot take from it.
"""

from __future__ import annotations

from .. import addresses, names, rtnetlink, state_files, tools
from ..cni import CHECK_FAILED, NOT_AVAILABLE, CniError, shown
from ..configuration import invalid
from ..locks import NodeLock, where_ours
from ..results import entries_of
from . import kernel
from .records import Entry, uplink_rate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..configuration import Configuration, Identity
    from ..leases import Lease
    from .differences import Difference
    from .ledger import Heard, Ledger
    from .records import Key, Tree
    from .settings import Settings


def take_over(state: str) -> None:
    """Have the files of a version before in the ledger. To be called before any lock is taken.

    Raises CniError 107 and 108.
    """
    if state_files.are_former(state):
        from . import ledger

        ledger.take_over(state)


def enter(book: Ledger, entry: Entry, settings: Settings | None, lock: NodeLock) -> None:
    """Write the attachment into the ledger, if its promise fits, then into the kernel.

    Its interface is there. Raises CniError 103, 105 and 106, tools.CommandError and OSError; then nothing is
    left of it but its lease.
    """
    with lock:
        _enter(book, settings, entry)


def change(book: Ledger, before: Entry, after: Entry, settings: Settings, heard: Heard | None = None) -> None:
    """Have another promise in the ledger, if it fits, then in the kernel. Called under the node's lock.

    `heard` is what the pod is annotated with, if that is why: the ledger has both or neither. Raises CniError
    105 and 106, tools.CommandError and OSError; then the ledger says what it said.
    """
    after.minor = before.minor
    heard_before = book.heard().get(before.key)
    with book:
        book.change(settings.tree, before, after)
        if heard is not None:
            book.hear(after.key, heard)
    try:
        try:
            kernel.change(settings.tree, before, after, book.promised(settings.tree))
        except (tools.CommandError, OSError):
            _repair(book, settings, fresh=False)
    except Exception:
        with book:
            book.change(settings.tree, after, before)
            book.hear(before.key, heard_before)
        raise


def withdraw(
    book: Ledger | None, network: Identity, container: str, interface: str, stays: bool = False
) -> None:
    """Take an attachment out of the kernel, and of the ledger all but its lease. Raises CommandError.

    With `stays` its pod goes on, with the interface that another plugin made for it. Without a ledger, or
    with a damaged one, the kernel's side is found by its names.
    """
    with where_ours(lambda: NodeLock(network.node_directory)):
        with state_files.WhereWhole():
            if book is not None:
                _leave(book, (network.name, container, interface), stays)
                return
        _forget(network, container, interface)


def _leave(book: Ledger, key: Key, stays: bool) -> None:
    entry = book.find(key)
    if entry is None:
        return
    there = False
    if entry.host_interface and entry.mac and not entry.is_ours:
        from .. import host_interfaces  # not above: few attachments are of a chain

        there = host_interfaces.is_same(entry)
        if there and not stays:
            # Its other plugin removes the link, a moment after its guard is gone.
            rtnetlink.take_down(entry.end)
    _take_out(book, entry)
    if there and stays:
        kernel.open_port(entry)
    gone = book.gives_up(entry)
    if gone is not None:
        kernel.give_up(gone, [tree for tree in book.trees() if tree != gone])
    with book:
        book.leave(key)
        if gone is not None:
            book.replace_tree(gone, None)


def _take_out(book: Ledger, entry: Entry) -> None:
    tree = book.tree_of(entry)
    try:
        kernel.leave(tree, entry, _promised(book, tree) - entry.rate)
    except (tools.CommandError, OSError):
        kernel.clear(tree, entry, [other for other in book.entries() if other.key != entry.key])


def _promised(book: Ledger, tree: Tree | None) -> int:
    return book.promised(tree) if tree is not None else 0


def _forget(network: Identity, container: str, interface: str) -> None:
    from .. import host_interfaces
    from . import remains

    previous = network.document.get("prevResult")
    try:
        address = _addresses(previous)[0]
    except CniError:
        address = None
    left = host_interfaces.left_by(previous, interface)
    known = () if address is None or not left else (address,)
    remains.forget({names.host_veth(network.name, container, interface), *left}, known)


def is_within(book: Ledger, key: Key, netns: str) -> bool:
    """Whether a pod's interface there is the one that was attached, as far as that was written down."""
    with state_files.WhereWhole():
        entry = book.find(key)
        if entry is not None:
            from .. import host_interfaces

            return host_interfaces.is_within(entry, netns, entry.interface)
    return True


def check(expected: Entry, settings: Settings | None, directory: str) -> None:
    """Compare ledger, tree, tables and port with that entry. Raises CniError 104 and tools.CommandError."""
    from . import ledger

    with NodeLock(directory):
        book = ledger.Ledger(directory)
        trees, entries = book.trees(), book.entries()
        tree = book.former(settings.tree, expected.network) if settings else None
        found = next((entry for entry in entries if entry.key == expected.key), None)
        if found is None or (settings is not None and tree is None):
            raise CniError(CHECK_FAILED, f"the node's ledger has no entry for {expected.who}")
        kernel.learn(trees)
        _, differences = kernel.compare(trees, entries)
    if settings is not None and tree is not None and tree != settings.tree:
        said, expected_tree = tree.configured, settings.tree.configured
        raise CniError(CHECK_FAILED, f"the node's ledger says {said}; expected {expected_tree}")
    # Who it is, for people, and the class's number are not the configuration's to say. The hardware address
    # of the node's end is anybody's to change, as udev does.
    others = ("pod", "minor", "host_mac", "number", "namespace", *(() if found.link else ("link", "inside")))
    said = {**vars(found), **{name: getattr(expected, name) for name in others}}
    if said != vars(expected):
        raise CniError(CHECK_FAILED, f"the node's ledger says {said}; expected {vars(expected)}")
    for difference in _pressing(differences, settings):
        if difference.key in (None, expected.key):
            raise CniError(CHECK_FAILED, difference.text)


def status(network: Configuration, settings: Settings | None, beforehand: bool = False) -> None:
    """Could a promise be kept now? Raises CniError 50 in words; `beforehand` as in verbs.status."""
    from . import ledger, shares

    with NodeLock(network.node_directory):
        book = ledger.Ledger(network.node_directory, reading=beforehand)
        trees, entries = book.trees(), book.entries()
        if entries:
            kernel.learn(trees)
        tree = book.former(settings.tree, network.name) if settings else None
        # Before the first ADD nothing is there; a configuration that may change is taken on by the next ADD.
        wanted = [one for one in trees if one != tree] + ([settings.tree] if settings else [])
        state, found = kernel.compare(wanted, entries)
    narrow = shares.too_narrow(len(entries))
    if narrow:
        raise CniError(NOT_AVAILABLE, "; ".join(narrow))
    if settings is not None:
        try:
            book.require(settings.tree, network.name)
            if not settings.take_over:
                kernel.require_ours(settings.tree.uplink, state)
        except CniError as error:
            raise CniError(NOT_AVAILABLE, error.msg) from error
        if tree != settings.tree:
            return
    if beforehand:
        return
    if texts := [difference.text for difference in _pressing(found, settings) if trees or entries]:
        raise CniError(NOT_AVAILABLE, f"{texts[0]} (differences: {len(texts)})", "\n".join(texts))


def complete(book: Ledger) -> None:
    """Write down what versions before did not ask of interfaces: which it is, and its pod's address."""
    from .. import host_interfaces

    for entry in book.entries():
        is_learned = entry.is_ours or entry.link
        if not entry.host_interface or (entry.mac and is_learned):
            continue
        known = addresses.pod_mac(entry.address) if entry.is_ours and entry.address is not None else ""
        entry.mac = entry.mac or known or rtnetlink.peer_address(entry.end)
        end = None if is_learned else host_interfaces.named(entry.end)
        if end is not None and entry.mac and rtnetlink.peer_address(entry.end) == entry.mac:
            entry.link, entry.host_mac, entry.inside, entry.number = end.index, end.mac, end.peer, end.number
        book.set_end(entry)


def entry_of(network: Configuration, lease: Lease, settings: Settings | None, netns: str = "") -> Entry:
    """The attachment's entry, as yet without a class; of another plugin's interface the kernel is asked.

    Raises CniError 7 when nothing tells its packets.
    """
    switched = ""
    if lease.link is not None:
        entry = plain_entry(network.name, lease)
    else:
        entry, switched = _of_previous(network, lease, netns)
    terms = lease.terms
    if settings is None:
        return entry
    entry.uplink, entry.ceil = settings.tree.uplink, settings.tree.capacity
    if not terms.promises:
        return entry
    if entry.address is None or not entry.host_interface:
        raise invalid("prevResult", "a guarantee needs an IPv4 address and the node's end of the interface")
    if switched:
        raise invalid("prevResult", f"a guarantee needs packets that the node routes, not {switched}")
    mtu = lease.mtu(network)
    entry.guarantee, entry.answers, entry.ingress = terms.guarantee, terms.answers, terms.ingress
    given = network.count, mtu, settings.encapsulation
    entry.rate = uplink_rate(terms.guarantee or 0, *given) + uplink_rate(terms.answers or 0, *given)
    entry.inward = uplink_rate(terms.ingress or 0, *given)
    if terms.ceiling is not None:
        entry.ceil = min(entry.ceil, uplink_rate(terms.ceiling, *given))
    entry.ceil = max(entry.rate, entry.ceil)
    return entry


def plain_entry(network: str, lease: Lease) -> Entry:
    """The entry of an attachment whose interface this plugin made, without a guarantee."""
    link = lease.link
    assert link is not None
    mac = addresses.pod_mac(link.address)
    return Entry(
        network,
        lease.container,
        lease.interface,
        lease.pod,
        link.address,
        link.bridge,
        link.host_veth,
        None,
        0,
        0,
        mac=mac,
    )


def _of_previous(network: Configuration, lease: Lease, netns: str) -> tuple[Entry, str]:
    """The entry of an attachment whose interface other plugins made, without a guarantee.

    And what takes its packets before the node routes them, if something does.
    """
    from .. import host_interfaces  # not above: few attachments are of a chain

    first, others = _addresses(network.previous)
    found = host_interfaces.of(network.previous, lease.interface, netns)
    key = network.name, lease.container, lease.interface
    ends = found.host_interface, found.port
    # What ADD was told, first: a pod with CAP_NET_ADMIN may have changed it since.
    mac = _mac(host_interfaces.told_mac(network.previous, lease.interface) or found.mac)
    entry = Entry(*key, lease.pod, first, *ends, None, 0, 0, mac=mac, others=others)
    entry.inside, entry.namespace = found.index, found.namespace
    if found.end is not None:
        entry.link, entry.host_mac, entry.number = found.end.index, found.end.mac, found.end.number
    return entry, found.switched


def _addresses(previous: object) -> tuple[int | None, str]:
    """The first IPv4 address of a result, and the others as an entry has them. Raises CniError 7."""
    first, others = None, []
    for ip in entries_of(previous, "ips"):
        text = str(ip.get("address", "")).partition("/")[0]
        try:
            if ":" in text:
                others.append(addresses.ipv6(addresses.ipv6_number(text)))
            elif first is None:
                first = addresses.parse(text)
            else:
                others.append(addresses.dotted(addresses.parse(text)))
        except ValueError as error:
            raise invalid("prevResult.ips", f"{shown(text)} {error}") from error
    return first, " ".join(others)


def _mac(value: object) -> str:
    text = str(value or "").lower()
    octets = text.split(":")
    if not text:
        return ""
    if len(octets) != 6 or not all(
        len(octet) == 2 and set(octet) <= set("0123456789abcdef") for octet in octets
    ):
        raise invalid("prevResult.interfaces", f"{shown(text)} is not a hardware address")
    return text


def _pressing(found: list[Difference], settings: Settings | None) -> list[Difference]:
    """Those that concern a network: of its own uplink, or of none, and no other's."""
    own = ("", settings.tree.uplink) if settings else None
    return [one for one in found if not one.waits and (own is None or one.uplink in own)]


def _enter(book: Ledger, settings: Settings | None, entry: Entry) -> None:
    former = book.former(settings.tree, entry.network) if settings else None
    if not entry.is_ours:
        _bury_the_dead(book, entry)
    with book:
        book.admit(settings.tree if settings else None, entry)
    try:
        if settings is None or former == settings.tree:
            _enforce(book, settings, entry)
            return
        if former is not None and former.uplink != settings.tree.uplink:
            kernel.abandon(former.uplink)
        _repair(book, settings, fresh=former is None)
    except Exception as error:
        touched = not isinstance(error, CniError)  # a repair raises those before it touches anything
        if touched:
            _clear(book, entry)
        with book:
            book.leave(entry.key)
            if settings is not None:
                book.replace_tree(settings.tree, former)
        if touched and settings is not None and former is None:
            kernel.give_up(settings.tree, book.trees())
        raise


def _bury_the_dead(book: Ledger, entry: Entry) -> None:
    """Take away what was of interfaces that are gone and whose name or address has come to this one.

    Their pods ended without a DEL, which may come yet.
    """
    from .. import host_interfaces

    for other in book.beside(entry):
        if not (entry.end and other.end == entry.end):
            link = host_interfaces.named(other.end) if other.end else None
            if not other.end or (link is not None and link.index == (other.link or link.index)):
                continue  # it lives, or nobody can say
        _take_out(book, other)
        with book:
            book.bury(other)


def _enforce(book: Ledger, settings: Settings | None, entry: Entry) -> None:
    tree = settings.tree if settings else None
    try:
        kernel.enter(tree, entry, _promised(book, tree))
        return
    except (tools.CommandError, OSError):
        pass  # something is missing or in the way
    try:
        _repair(book, settings, fresh=False)
    except CniError:
        _clear(book, entry)
        raise


def _repair(book: Ledger, settings: Settings | None, fresh: bool) -> None:
    complete(book)
    if settings is None:  # the trees are of those who have promises
        kernel.repair(book.trees(), book.entries(), tables_only=True)
        return
    kernel.repair(book.trees(), book.entries(), own=settings.tree, take_over=settings.take_over, fresh=fresh)


def _clear(book: Ledger, entry: Entry) -> None:
    others = [other for other in book.entries() if other.key != entry.key]
    kernel.clear(book.tree_of(entry), entry, others)
