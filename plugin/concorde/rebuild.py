"""`concorde rebuild`: make the ledger again, then reconcile the kernel.

It may be called at any time, whatever of the ledger is whole. Calls of the networks at hand wait meanwhile,
and what of them was under way has ended. A damaged file is kept beside the new one; nothing is deleted.
"""

from __future__ import annotations

import os

from . import attached, bridges, cache, enforcements, host_interfaces, names, state_files
from .cni import UNTRUSTED, CniError
from .configuration import Identity, node_directory
from .locks import NetworkLock, NodeLock
from .node import attachments, kernel, ledger, migration, remains
from .node.messages import rate
from .node.records import of_tree, promised

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .attached import Attached
    from .bridges import Port
    from .cache import Kept
    from .configuration import Configuration
    from .leases import Lease, Link
    from .node.ledger import Heard
    from .node.records import Entry, Key, Tree
    from .node.settings import Settings


class Former:
    """What a whole ledger told: nothing, if there was none."""

    def __init__(self, directory: str) -> None:
        self.is_whole = False
        self.trees: list[Tree] = []
        self.entries: list[Entry] = []
        self.leases: dict[Key, Lease] = {}
        self.last: dict[tuple[str, str], int] = {}
        self.changed: dict[Key, dict[str, int | None]] = {}
        self.heard: dict[Key, Heard] = {}
        with state_files.WhereWhole():
            book = ledger.opened(directory)
            if book is None:
                return
            told = book.trees(), book.entries(), book.leases(), book.last_given()
            self.trees, self.entries, self.leases, self.last = told
            self.changed, self.heard = book.changed(), book.heard()
            self.is_whole = True
            book.close()


def rebuild(state: str, caches: Iterable[str]) -> list[str]:
    """Do it, and return line for line what was done and what nobody told.

    Raises CniError 108 for a state directory that is not ours, tools.CommandError and OSError.
    """
    state = state.rstrip("/")
    directory = node_directory(state)
    caches = list(caches)
    said: list[str] = []
    networks = {_network(kept) for kept in _here(state, cache.read(caches)[0], [])} | _listed(state)
    locks = []
    try:
        for name in sorted(networks):
            _secure(f"{state}/{name}", state_files.ATTACHMENTS_LOCK, said)
            locks.append(NetworkLock(f"{state}/{name}"))
        # Read again: until now calls went on.
        found, faults = cache.read(caches)
        said += [f"not learned: {fault}" for fault in faults]
        kept = _here(state, found, said)
        if networks or os.path.lexists(directory):
            _secure(directory, state_files.NODE_LOCK, said)
            with NodeLock(directory):
                _make_again(directory, networks, kept, said)
    finally:
        for lock in locks:
            lock.release()
    return said


def _network(kept: Kept) -> str:
    return str(kept.document["name"])


def _listed(state: str) -> set[str]:
    """The networks that have something of ours in the state directory."""
    if not os.path.lexists(state):
        return set()
    state_files.look(state)
    return {
        name
        for name in os.listdir(state)
        if names.is_identifier(name)
        and f"{state}/{name}" != node_directory(state)
        and state_files.DAMAGED not in name
        and any(os.path.lexists(f"{state}/{name}/{mark}") for mark in state_files.MARKS)
    }


def _here(state: str, kept: Iterable[Kept], said: list[str]) -> list[Kept]:
    """The attachments whose state lies here."""
    here = []
    for one in kept:
        try:
            identity = Identity(one.document)
            identity.require_names()
        except CniError as error:
            said.append(f"not learned: {one.path}: {error.msg}")
            continue
        if identity.state == state:
            here.append(one)
    return here


def _secure(directory: str, lock: str, said: list[str]) -> None:
    """Have a directory of the state that is ours, with its lock; what is in their place is put aside.

    Raises CniError 108 for the state directory itself.
    """
    state_files.look(os.path.dirname(directory))
    for path, open_it in ((directory, state_files.directory), (f"{directory}/{lock}", state_files.touch)):
        try:
            open_it(path)
        except CniError:
            said.append(f"kept: {state_files.set_aside(path)}")
            open_it(path)


def _make_again(directory: str, networks: set[str], kept: list[Kept], said: list[str]) -> None:
    """Make the ledger again if it has anything to tell, and the kernel what it says."""
    _put_stores_aside(os.path.dirname(directory), said)
    was_there, former = ledger.is_there(directory), Former(directory)
    alive, unknown = _who_lives(networks | {key[0] for key in former.leases}, kept, former, said)
    _change(alive, former)
    settings = _settings(alive, said)
    if not (alive or was_there or former.is_whole):
        return
    path = ledger.path(directory)
    _clear(path + state_files.NEW)
    new = ledger.Ledger(directory, new=True)
    with new:
        leases = {one.key: one.lease for one in alive}
        for key in new.restore_leases(leases, former.last, unknown, former.changed):
            (one,) = [one for one in alive if one.key == key]
            alive.remove(one)
            said.append(f"not learned: {one.who} has another's address")
        entries = _entries(alive, settings, {row.key: row for row in former.entries}, said)
        trees = _trees(former.trees, [one.tree for one in settings.values()], entries, said)
        left = new.restore_entries(trees, entries)
        for key, heard in former.heard.items():
            new.hear(key, heard)
        written = new.entries()
    new.close()
    _replace(path, former.is_whole, said)
    ledger.Ledger(directory).close()  # stores are of no use from now on
    said += [f"not learned: {entry.who} has what another attachment has already" for entry in left]
    said.append(f"made: {path}, attachments: {len(written)}")
    _reconcile(trees, written, said)


def _change(alive: list[Attached], former: Former) -> None:
    """Let pods keep what they were promised since their ADD, of which caches do not tell."""
    for one in alive:
        own, said = former.leases.get(one.key), former.changed.get(one.key)
        if own is not None and said:
            one.change(own.terms, said)


def _put_stores_aside(state: str, said: list[str]) -> None:
    """Those of a version before that cannot be trusted."""
    for _, path in state_files.former_stores(state):
        try:
            state_files.database(path)
            migration.read(path)
        except CniError as error:
            if error.code not in UNTRUSTED:
                raise
            said.append(f"kept: {state_files.set_aside(path)}")


def _who_lives(
    networks: Iterable[str], kept: list[Kept], former: Former, said: list[str]
) -> tuple[list[Attached], list[tuple[str, Link]]]:
    """The living attachments of networks, and their ports of which nobody knows whose they are."""
    ports = bridges.ports()
    everybody: list[Attached] = []
    unknown = []
    for network in sorted(networks):
        rows = [lease for key, lease in former.leases.items() if key[0] == network]
        alive = _of_network(network, [one for one in kept if _network(one) == network], rows, ports, said)
        for link in attached.nobodys(alive, ports):
            unknown.append((network, link))
            owner = f"the owner of port {link.host_veth} of {link.bridge}"
            said.append(f"not learned: {owner}; its address stays reserved")
        everybody += alive
    return everybody, unknown


def _of_network(
    network: str, kept: list[Kept], rows: list[Lease], ports: dict[str, Port], said: list[str]
) -> list[Attached]:
    alive: dict[Key, Attached] = {}
    for one in kept:
        try:
            found = attached.of_cache(network, one, ports)
        except CniError as error:
            said.append(f"not learned: {network} {one.pod or one.container}: {error.msg}")
            continue
        # Two may lead to one interface: a pod's, and that of a pod that had its name or place before.
        if found is not None and not any(found.shares_an_end(other) for other in alive.values()):
            alive[found.key] = found
    for row in rows:
        found = attached.of_row(network, row, ports)
        if found is not None:
            alive.setdefault(found.key, found)
    return list(alive.values())


def _reconcile(trees: list[Tree], written: list[Entry], said: list[str]) -> None:
    """Make the kernel what the new ledger says."""
    if not trees:
        said += _abandoned(written)
        if not (written or remains.elements()):  # those of the gone are nobody's by now
            return
    for link in (one for tree in trees for one in (tree, tree.downlink)):
        excess = promised(of_tree(link, written), link.direction) - link.promisable
        if excess > 0:
            received = " of what is received" if link == link.downlink else ""
            said.append(f"more is promised on {link.uplink}{received} than it has, by {rate(excess)}")
    try:
        said += [f"repaired: {text}" for text in kernel.repair(trees, written)]
    except CniError as error:
        said.append(f"not reconciled: {error.msg}")


def _trees(former: list[Tree], told: list[Tree], entries: list[Entry], said: list[str]) -> list[Tree]:
    """Of each uplink the tree that all networks tell of, which rely on it, or the ledger's, if they differ.

    A ledger that is whole may have a bit that is not: CHECK would refuse every pod for it. What it alone
    tells of counts where somebody is in it.
    """
    ledgers = {tree.key: tree for tree in former}
    found = {}
    for key in dict.fromkeys(tree.key for tree in told):
        own = [tree for tree in told if tree.key == key]
        agreed = all(tree == own[0] for tree in own)
        found[key] = own[0] if agreed else ledgers.get(key, own[0])
    for tree in former:
        if tree.key not in found and (not told or of_tree(tree, entries)):
            found[tree.key] = tree
    trees = list(found.values())
    for tree in trees:  # nobody else tells of the classes that other nodes' traffic has
        tree.peers = ledgers[tree.key].peers if tree.fabric is not None and tree.key in ledgers else {}
    if told and former and sorted(map(_text, former)) != sorted(map(_text, trees)):
        ours, theirs = (" and ".join(map(_text, some)) for some in (former, trees))
        said.append(f"the ledger said {ours}, and every network says {theirs}")
    return trees


def _text(tree: Tree) -> str:
    return str(tree.configured)


def _abandoned(written: list[Entry]) -> list[str]:
    """Take away a tree whose parameters nobody tells, and on which nothing is promised: ADD makes it anew."""
    uplinks = [] if written else remains.uplinks_of_trees()
    for uplink in uplinks:
        kernel.abandon(uplink)
    unknown = "(its settings are not known, and nothing is promised on it)"
    return [f"removed: the tree on {uplink} {unknown}" for uplink in uplinks]


def _settings(alive: list[Attached], said: list[str]) -> dict[str, Settings]:
    """The uplink's settings by network, of those that have promises there; the newest attachment's first."""
    found: dict[str, Settings] = {}
    for one in alive:
        if one.configuration is None or one.network in found:
            continue
        try:
            settings = enforcements.load(one.configuration.enforcement).on_uplink(one.configuration)
        except CniError as error:
            said.append(f"not learned: the uplink of {one.network}: {error.msg}")
            continue
        if settings is not None:
            found[one.network] = settings
    return found


def _entries(
    alive: list[Attached], settings: dict[str, Settings], rows: dict[Key, Entry], said: list[str]
) -> list[Entry]:
    """The entries of all that live; classes keep the minors that the kernel's map has."""
    configurations = {one.network: one.configuration for one in reversed(alive) if one.configuration}
    entries = []
    for one in alive:
        entry = _entry(one, configurations, settings, rows.get(one.key), said)
        entries += [entry] if entry is not None else []
    taken = (
        {one.key for one in alive},
        {entry.end for entry in entries},
        {entry.address for entry in entries},
    )
    entries += [row for row in rows.values() if _is_left(row, *taken)]
    _number(entries, remains.minors(remains.elements()))
    return entries


def _number(entries: list[Entry], minors: dict[int, int]) -> None:
    """Let classes keep their minors. A map that followed a damaged ledger may give one to two addresses."""
    given: set[int] = set()
    for entry in entries:
        minor = None if entry.address is None else minors.get(entry.address)
        entry.minor = None if minor in given else minor
        given.update([] if minor is None else [minor])


def _entry(
    one: Attached,
    configurations: dict[str, Configuration],
    settings: dict[str, Settings],
    row: Entry | None,
    said: list[str],
) -> Entry | None:
    """The entry of one that lives, or `row`, which the ledger has of it."""
    configuration = one.configuration or configurations.get(one.network)
    promised = enforcements.load(one.lease.terms.enforcement).RESERVES
    known = one.network in settings or not promised
    if configuration is not None and known and (one.configuration or one.lease.link):
        try:
            given = settings[one.network] if promised else None
            return attachments.entry_of(configuration, one.lease, given, one.netns)
        except CniError as error:
            said.append(f"not learned: what {one.who} was promised: {error.msg}")
            return row
    if row is None and promised:
        said.append(f"not learned: what {one.who} was promised")
    if row is None and one.lease.link is not None:
        return attachments.plain_entry(one.network, one.lease)  # it is guarded, whatever it was promised
    if row is not None and row.end and not (row.is_ours or host_interfaces.is_same(row)):
        row.bury()
    return row


def _is_left(row: Entry, keys: set[Key], ports: set[str], given: set[int | None]) -> bool:
    """Whether the ledger alone tells of an attachment, and the kernel does not contradict."""
    if row.key in keys or row.address in given or row.end in ports:
        return False
    if names.is_host_veth(row.port) and row.port != names.host_veth(*row.key):
        return False
    return bool(row.end) and host_interfaces.is_same(row)


def _clear(path: str) -> None:
    """Remove what a rebuild that was killed had not finished."""
    for suffix in ("", *state_files.BESIDE):
        if os.path.lexists(path + suffix):
            os.unlink(path + suffix)


def _replace(path: str, whole: bool, said: list[str]) -> None:
    """Put the new file in its place; one that was damaged is kept."""
    if not whole:
        for suffix in ("", *state_files.BESIDE):
            if os.path.lexists(path + suffix):
                said.append(f"kept: {state_files.set_aside(path + suffix)}")
    os.rename(path + state_files.NEW, path)
