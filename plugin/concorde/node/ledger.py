"""The ledger: all that this node's attachments hold, whatever their network, in one file.

An attachment is one row, from before the kernel is touched until nothing is left of it: its link, what it was
promised, its class and what it is guarded by. The paper has an allocated-IP file a cluster, and leaves it to
the masters to promise no more than a link holds; but two masters promise from the same link of an overlapped
worker. So this is one file per node, and a promise that does not fit is refused. `bandwidth_allocate` of the
paper's MANO is the guarantee written with an address, `bandwidth_collect` its removal.

A row is *leased* once ADD has written it, with what it was promised, and an address if we make the interface.
It is *entered* once it is admitted, which comes with what the node knows of the interface, and with classes.
DEL undoes the second before the kernel's link goes, and the first after.
"""

from __future__ import annotations

import os

from .. import addresses, state_files
from ..cni import ALREADY_ATTACHED, NO_BANDWIDTH, NO_FREE_ADDRESS, UPLINK_CONFLICT, CniError
from ..database import Conflict, Database, damaged
from ..leases import EGRESS, INGRESS, lease_of
from ..locks import NetworkLock, NodeLock
from . import htb, messages
from .records import Entry, Tree, fabric_of, of_tree, promised

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ..database import Step
    from ..leases import Lease, Link
    from .records import Key

    # A pod's annotations that promise something to an attachment: those that were followed last, and those
    # that were refused since.
    Heard = tuple[dict[str, str], dict[str, str] | None]

TABLES = (
    # A tree an uplink and direction, in bits per second of the wire. Promises' rates are of layer 2 there.
    "CREATE TABLE tree (uplink TEXT NOT NULL, direction TEXT NOT NULL, capacity INTEGER NOT NULL,"
    " reserve INTEGER NOT NULL, ports TEXT NOT NULL, overhead INTEGER NOT NULL, segment INTEGER NOT NULL,"
    " PRIMARY KEY (uplink, direction)) WITHOUT ROWID",
    """CREATE TABLE attachment (
        network TEXT NOT NULL,
        container TEXT NOT NULL,    -- CNI_CONTAINERID
        interface TEXT NOT NULL,    -- CNI_IFNAME
        pod TEXT NOT NULL,          -- namespace/name, or empty
        enforcement TEXT,           -- null if only a version before told of it
        rate INTEGER,               -- of the class on the pod's interface, bits per second of layer 2
        burst INTEGER,              -- bytes
        address INTEGER UNIQUE,     -- null when another plugin gave no IPv4 address
        mtu INTEGER,                -- bytes; this and the next three are null when another made the interface
        subnet TEXT,
        bridge TEXT,
        host_veth TEXT UNIQUE,
        host_interface TEXT,        -- this and the rest as records.Entry has it; null until it is entered
        port TEXT, mac TEXT, others TEXT,
        link INTEGER, host_mac TEXT, inside INTEGER, number INTEGER, namespace TEXT,
        PRIMARY KEY (network, container, interface)
    ) WITHOUT ROWID""",
    """CREATE TABLE promise (
        network TEXT NOT NULL,
        container TEXT NOT NULL,
        interface TEXT NOT NULL,
        direction TEXT NOT NULL,    -- egress: of what the pod sends; ingress: receives, which has no class
        peer TEXT NOT NULL,         -- to whom; empty: to anybody
        guarantee INTEGER,          -- this and the next two in bits per second as promised
        answers INTEGER,            -- for acknowledgements of what others send
        ceiling INTEGER,
        uplink TEXT,                -- of which link it is; null while of none
        rate INTEGER NOT NULL,      -- what guarantee and answers take there, in that direction
        ceil INTEGER NOT NULL,
        -- Of the classes. A mark says no uplink: where a packet leaves by another one, it has no class there.
        minor INTEGER,
        PRIMARY KEY (network, container, interface, direction, peer),
        UNIQUE (direction, minor)
    ) WITHOUT ROWID""",
    # The next address is sought after the last one given, so that a new pod does not at once inherit the
    # address, and the peers' connections, of one that just ended.
    "CREATE TABLE subnet (network TEXT NOT NULL, subnet TEXT NOT NULL, last INTEGER NOT NULL,"
    " PRIMARY KEY (network, subnet)) WITHOUT ROWID",
    # Addresses that no pod may get: the subnet's own, and those of ports that nobody knows the owner of.
    "CREATE TABLE reserved (network TEXT NOT NULL, address INTEGER NOT NULL, port TEXT,"
    " PRIMARY KEY (network, address)) WITHOUT ROWID",
)
_OF_TREE = "uplink, direction, capacity, reserve, ports, overhead, segment, fabric"
_KEY = "network = ? AND container = ? AND interface = ?"
_ROWS = "FROM attachment AS a" + "".join(
    f" LEFT JOIN promise AS {name} ON {name}.network = a.network AND {name}.container = a.container"
    f" AND {name}.interface = a.interface AND {name}.direction = '{direction}'"
    for name, direction in (("i", INGRESS), ("p", EGRESS))
)
_SELECT_LEASES = (
    "SELECT a.network, a.container, a.interface, enforcement, p.guarantee, p.ceiling, a.rate, burst,"
    f" p.answers, mtu, address, subnet, bridge, host_veth, i.guarantee {_ROWS} AND p.peer = ''"
    " WHERE enforcement IS NOT NULL"
)
_SELECT_ENTRIES = (
    "SELECT a.network, a.container, a.interface, pod, address, host_interface, port, p.guarantee,"
    " coalesce(p.rate, 0), coalesce(p.ceil, 0), p.minor, mac, others, p.answers, link, host_mac, inside,"
    " number, namespace, coalesce(p.uplink, ''), coalesce(p.peer, ''),"
    " CASE WHEN i.uplink IS NULL THEN NULL ELSE i.guarantee END, coalesce(i.rate, 0)"
    f" {_ROWS} AND p.uplink IS NOT NULL WHERE host_interface IS NOT NULL"
)
_MINOR = "SELECT 1 FROM promise WHERE direction = 'egress' AND minor = "
_THIS = " AND a.network = ? AND a.container = ? AND a.interface = ?"
_NUMBER = (int, type(None))
_KINDS: tuple[Any, ...] = (  # of an entry's columns
    *(str, str, str, str, _NUMBER, str, str),
    *(_NUMBER, int, int, _NUMBER, str, str, _NUMBER),
    *(int, str, int, int, str),
    *(str, str, _NUMBER, int),
)
# What entering writes down of an attachment, and leaving takes back.
_ENTERED = "host_interface", "port", "mac", "others", "link", "host_mac", "inside", "number", "namespace"


def path(directory: str) -> str:
    """Where the ledger of a node directory lies."""
    return f"{directory}/{state_files.LEDGER}"


def is_there(directory: str) -> bool:
    """Whether there is a ledger in a node directory, or files of which one is made."""
    return os.path.lexists(path(directory)) or bool(state_files.former_stores(os.path.dirname(directory)))


def opened(directory: str) -> Ledger | None:
    """The ledger of a node directory, if there is one. Raises CniError 107 and 108."""
    return Ledger(directory) if is_there(directory) else None


def take_over(state: str) -> None:
    """Take over what a version before left, once its calls that are under way have ended.

    To be called before any lock is taken. Raises CniError 107 and 108.
    """
    locks = []
    try:
        for network, _ in state_files.former_stores(state):
            locks.append(NetworkLock(f"{state}/{network}"))
        directory = f"{state}/node"
        with NodeLock(directory):
            Ledger(directory).close()
    finally:
        for lock in locks:
            lock.release()


class Ledger(Database):
    """A connection to the node's ledger. A block `with ledger:` is one writing transaction."""

    def __init__(self, directory: str, new: bool = False, reading: bool = False) -> None:
        """Open or create it; `new` is what `rebuild` makes beside it, and is done when it has that place.

        Raises CniError 107 and 108.
        """
        self._new = new
        self._state = os.path.dirname(directory)
        super().__init__(
            path(directory) + (state_files.NEW if new else ""), state_files.LEDGER_VERSION - new, reading
        )

    def _steps(self) -> tuple[Step, ...]:
        from . import migration  # few calls find an older file, or none

        return migration.steps(
            TABLES, () if self._new else state_files.former_stores(self._state), self._reading
        )

    # Trees, and what is promised there.

    def trees(self) -> list[Tree]:
        """The trees' parameters, by uplink; there are some once there was an ADD.

        What arrives by a link has none of its own (records.Tree.downlink).
        """
        query = f"SELECT {_OF_TREE} FROM tree WHERE direction = ?"
        trees = [self._tree(row) for row in self._database.execute(query, (EGRESS,))]
        for tree in trees:
            if tree.fabric is not None:
                tree.peers = self._peers(tree)
        return trees

    def add_peer(self, tree: Tree, address: int) -> int:
        """Give what goes to a node of the fabric a class, and return its minor.

        To be called within a transaction. Raises CniError 105 if none is free.
        """
        known = self._peers(tree)
        if address not in known:
            taken = set(known.values())
            minor = next((one for one in htb.PEERS if one not in taken), None)
            if minor is None:
                raise CniError(NO_BANDWIDTH, f"{tree.uplink} has classes for {len(htb.PEERS)} nodes already")
            self._write_peer(tree, address, minor)
            known[address] = minor
        return known[address]

    def _write_peer(self, tree: Tree, address: int, minor: int) -> None:
        self._database.execute("INSERT INTO peer VALUES (?, ?, ?)", (tree.uplink, address, minor))

    def _peers(self, tree: Tree) -> dict[int, int]:
        query = "SELECT address, minor FROM peer WHERE uplink = ?"
        return dict(self._database.execute(query, (tree.uplink,)))

    def tree_of(self, entry: Entry) -> Tree | None:
        """The tree that has an entry's classes."""
        return next((tree for tree in self.trees() if tree.key == entry.tree), None)

    def former(self, tree: Tree, network: str) -> Tree | None:
        """The one in whose place a tree of a network would come.

        That of its uplink, the one that the network is in, as it has one uplink, or one that nobody is in.
        """
        trees = self.trees()
        for one in trees:
            if one.uplink == tree.uplink:
                return one
        entries = self.entries() if trees else []
        within = [(one, {entry.network for entry in of_tree(one, entries)}) for one in trees]
        places = sorted(within, key=lambda place: network not in place[1])
        return next((one for one, networks in places if network in networks or not networks), None)

    def gives_up(self, entry: Entry) -> Tree | None:
        """The tree that goes with an entry: who leaves it is the last there, and the node has another."""
        trees = self.trees()
        if len(trees) < 2:
            return None
        tree = next((one for one in trees if one.key == entry.tree), None)
        left = [] if tree is None else of_tree(tree, self.entries())
        return tree if [one.key for one in left] == [entry.key] else None

    def replace_tree(self, former: Tree | None, tree: Tree | None) -> None:
        """Write down a tree in place of another, if there are both; who was in a tree that is gone follows.

        To be called within a transaction.
        """
        if former is not None:
            self._database.execute("DELETE FROM tree WHERE uplink = ? AND direction = ?", former.key)
            if tree is None or tree.fabric is None or tree.uplink != former.uplink:
                self._database.execute("DELETE FROM peer WHERE uplink = ?", (former.uplink,))
        if tree is not None:
            ports = " ".join(map(str, tree.ports))
            fabric = tree.fabric.text if tree.fabric else ""
            row = (*tree.key, tree.capacity, tree.reserve, ports, tree.overhead, tree.segment, fabric)
            self._database.execute(f"INSERT INTO tree ({_OF_TREE}) VALUES ({', '.join('?' * len(row))})", row)
            self._database.execute(
                "UPDATE promise SET uplink = ? WHERE uplink NOT IN (SELECT uplink FROM tree)", (tree.uplink,)
            )

    def promised(self, tree: Tree) -> int:
        """The sum of what is promised in a tree, or on a downlink (bits per second)."""
        query = "SELECT total(rate) FROM promise WHERE uplink = ? AND direction = ?"
        (total,) = self._database.execute(query, tree.key).fetchone()
        return int(total)

    def require(self, tree: Tree, network: str) -> None:
        """Refuse a configuration that contradicts what is already promised on the node.

        One that only its own network has relied on so far may change, if what is promised still fits.
        Raises CniError 105 and 106.
        """
        former = self.former(tree, network)
        if former is None or former == tree:
            return
        entries = of_tree(former, self.entries())
        holders = {entry.network for entry in entries if entry.rate or entry.inward}
        if holders - {network} or (holders and former.uplink != tree.uplink):
            raise CniError(UPLINK_CONFLICT, messages.contradiction(former, tree, holders))
        for link in (tree, tree.downlink):
            if promised(entries, link.direction) > link.promisable:
                raise CniError(NO_BANDWIDTH, messages.shrunk(link, entries))

    # Leases.

    def knows(self, network: str, subnet: addresses.Subnet) -> bool:
        """Whether a network has given addresses of a subnet before."""
        query = "SELECT 1 FROM subnet WHERE network = ? AND subnet = ?"
        return self._database.execute(query, (network, str(subnet))).fetchone() is not None

    def has_pods(self, network: str) -> bool:
        """Whether a network has an attachment."""
        query = "SELECT 1 FROM attachment WHERE network = ? LIMIT 1"
        return self._database.execute(query, (network,)).fetchone() is not None

    def has_pods_on(self, network: str, bridge: str) -> bool:
        """Whether a network has a port of a bridge."""
        query = "SELECT 1 FROM attachment WHERE network = ? AND bridge = ? LIMIT 1"
        return self._database.execute(query, (network, bridge)).fetchone() is not None

    def next_address(self, network: str, subnet: addresses.Subnet) -> int:
        """The free address after the one given last. Raises CniError 102.

        To be called within the transaction that adds the lease.
        """
        key = network, str(subnet)
        query = "SELECT last FROM subnet WHERE network = ? AND subnet = ?"
        row = self._database.execute(query, key).fetchone()
        if row is None:
            self._reserve(network, subnet)
        last = subnet.gateway if row is None else row[0]
        if last not in subnet:
            raise damaged(self._path, f"the last address given of {subnet} is not in it")
        for start in (last + 1, subnet.network):
            address = self._first_free(network, start)
            if address < subnet.broadcast:
                self._last(network, str(subnet), address)
                return address
        raise CniError(NO_FREE_ADDRESS, f"all {subnet.size} addresses of subnet {subnet} are in use")

    def add(self, network: str, lease: Lease) -> None:
        """Write down a lease. Raises CniError 103 when the attachment or its link's name has one."""
        terms, link = lease.terms, lease.link
        row: tuple[Any, ...] = (network, lease.container, lease.interface)
        made = (None,) * 5
        if link is not None:
            made = link.address, link.mtu, str(link.subnet), link.bridge, link.host_veth  # type: ignore[assignment]
        try:
            self._database.execute(
                "INSERT INTO attachment (network, container, interface, pod, enforcement, rate, burst,"
                " address, mtu, subnet, bridge, host_veth) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*row, lease.pod, terms.enforcement, terms.rate, terms.burst, *made),
            )
        except Conflict as error:
            raise CniError(
                ALREADY_ATTACHED, f"container {lease.container} has {lease.interface} in this network already"
            ) from error
        self._promise((*row, EGRESS, "", terms.guarantee, terms.answers, terms.ceiling, None, 0, 0, None))
        self._promise((*row, INGRESS, "", terms.ingress, None, None, None, 0, 0, None))

    def lease(self, key: Key) -> Lease | None:
        """The lease of an attachment."""
        row = self._database.execute(_SELECT_LEASES + _THIS, key).fetchone()
        return None if row is None else self._lease(row)

    def leases(self) -> dict[Key, Lease]:
        """All leases of all networks."""
        return {row[:3]: self._lease(row) for row in self._database.execute(_SELECT_LEASES)}

    def keys(self, network: str) -> list[Key]:
        """All attachments of a network that anything is written down of."""
        query = "SELECT network, container, interface FROM attachment WHERE network = ?"
        return list(self._database.execute(query, (network,)))

    def drop(self, key: Key, port: str = "") -> None:
        """Forget an attachment, if it is there, and the address of its port of which nobody knew the owner.

        Its address and its bandwidth are free again. To be called within a transaction.
        """
        for table in ("attachment", "promise", "changed"):
            self._database.execute(f"DELETE FROM {table} WHERE {_KEY}", key)
        self._database.execute("DELETE FROM reserved WHERE network = ? AND port = ?", (key[0], port))

    def forget(self, network: str) -> None:
        """Forget a network that has no attachment any more. To be called within a transaction."""
        for table in ("subnet", "reserved"):
            self._database.execute(f"DELETE FROM {table} WHERE network = ?", (network,))

    def free_addresses(self, subnet: addresses.Subnet) -> int:
        """How many more pods the subnet has addresses for."""
        query = "SELECT count(*) FROM attachment WHERE address BETWEEN ? AND ?"
        (taken,) = self._database.execute(query, (subnet.network, subnet.broadcast)).fetchone()
        return subnet.size - int(taken)

    def last_given(self) -> dict[tuple[str, str], int]:
        """For each network and subnet the address given last."""
        rows = self._database.execute("SELECT network, subnet, last FROM subnet")
        for row in rows:
            try:
                if row[2] in addresses.parse_subnet(row[1]):
                    continue
            except (AttributeError, TypeError, ValueError):
                pass
            raise damaged(self._path, f"not a subnet: {row}")
        return {(network, subnet): last for network, subnet, last in rows}

    # Entries.

    def entries(self) -> list[Entry]:
        """All that are entered, ordered by their key."""
        return [self._entry(row) for row in self._database.execute(_SELECT_ENTRIES)]

    def find(self, key: Key) -> Entry | None:
        """An attachment's entry, if it is entered."""
        row = self._database.execute(_SELECT_ENTRIES + _THIS, key).fetchone()
        return None if row is None else self._entry(row)

    def beside(self, entry: Entry) -> list[Entry]:
        """Those that have the same end on the node as another one, or its address."""
        query = (
            " AND NOT (a.network = ? AND a.container = ? AND a.interface = ?)"
            " AND (CASE port WHEN '' THEN host_interface ELSE port END = ? AND host_interface != ''"
            " OR address = ?)"
        )
        rows = self._database.execute(_SELECT_ENTRIES + query, (*entry.key, entry.end, entry.address))
        return [self._entry(row) for row in rows]

    def admit(self, tree: Tree | None, entry: Entry) -> None:
        """Enter an attachment, and the minor of its class into the entry, if its promise fits.

        Without a tree it has none. To be called within a transaction. Raises CniError 105 when it does not
        fit, 106 when the node's tree is configured otherwise, 103 when it is entered already.
        """
        if tree is not None:
            self.require(tree, entry.network)
            former = self.former(tree, entry.network)
            if former != tree:
                self.replace_tree(former, tree)
            for link in (tree, tree.downlink):
                self._require_room(link, entry)
        if entry.has_classes:
            entry.minor = self._free_minor()
        self.enter(entry)

    def _require_room(self, link: Tree, entry: Entry) -> None:
        # What was promised before may be more, of a version that promised more of the same capacity.
        if entry.takes(link.direction) > max(0, link.promisable - self.promised(link)):
            raise CniError(NO_BANDWIDTH, messages.refusal(link, of_tree(link, self.entries()), entry))

    def change(self, tree: Tree, before: Entry, after: Entry) -> None:
        """Promise an attachment something else, if it fits at both ends, as less always does.

        To be called within a transaction. Raises CniError 105 and 106.
        """
        self.require(tree, after.network)
        others = [one for one in of_tree(tree, self.entries()) if one.key != after.key]
        for link in (tree, tree.downlink):
            room = link.promisable - promised(others, link.direction)
            if after.takes(link.direction) > max(before.takes(link.direction), room):
                raise CniError(NO_BANDWIDTH, messages.refusal(link, others, after))
        self._promises(after)
        if before.inward and not after.inward:
            query = f"DELETE FROM promise WHERE {_KEY} AND direction = ?"
            self._database.execute(query, (*after.key, INGRESS))
        for direction in (EGRESS, INGRESS):
            if before.promise(direction) != after.promise(direction):
                self._say_changed(after.key, direction, before.promise(direction))

    def _say_changed(self, key: Key, direction: str, said: int | None) -> None:
        self._database.execute(
            "INSERT OR IGNORE INTO changed VALUES (?, ?, ?, ?, ?)", (*key, direction, said)
        )

    def changed(self) -> dict[Key, dict[str, int | None]]:
        """What the configuration says, by direction, of who was promised something else (`change`)."""
        found: dict[Key, dict[str, int | None]] = {}
        query = "SELECT network, container, interface, direction, guarantee FROM changed"
        for *key, direction, said in self._database.execute(query):
            found.setdefault(tuple(key), {})[direction] = said
        return found

    def heard(self) -> dict[Key, Heard]:
        """What attachments' pods were annotated with, of those where that was written down (`hear`)."""
        found: dict[Key, Heard] = {}
        query = "SELECT network, container, interface, heard FROM attachment WHERE heard IS NOT NULL"
        for row in self._database.execute(query):
            found[row[:3]] = self._heard(row)
        return found

    def hear(self, key: Key, heard: Heard | None) -> None:
        """Write down what an attachment's pod is annotated with, if it is there still.

        To be called within a transaction.
        """
        import json  # no runtime's call comes here

        text = None if heard is None else json.dumps(heard)
        self._database.execute(f"UPDATE attachment SET heard = ? WHERE {_KEY}", (text, *key))

    def enter(self, entry: Entry) -> None:
        """Write down what the node knows of an attachment. To be called within a transaction.

        Raises CniError 103.
        """
        if self.find(entry.key) is not None:
            raise CniError(ALREADY_ATTACHED, messages.taken(entry, []))
        columns = "network", "container", "interface", "pod", "address", *_ENTERED
        try:
            self._database.execute(
                f"INSERT INTO attachment ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
                " ON CONFLICT (network, container, interface) DO UPDATE SET "
                + ", ".join(f"{name} = excluded.{name}" for name in columns[3:]),
                [getattr(entry, name) for name in columns],
            )
        except Conflict as error:
            raise CniError(ALREADY_ATTACHED, messages.taken(entry, self.entries())) from error
        self._promises(entry)

    def _promises(self, entry: Entry) -> None:
        """Write down what an attachment's promises take, in both directions."""
        if entry.ceil or entry.rate:
            asked = entry.guarantee, entry.answers, None
            of = EGRESS, entry.peer
            self._promise((*entry.key, *of, *asked, entry.uplink, entry.rate, entry.ceil, entry.minor))
        if entry.inward:
            asked = entry.ingress, None, None
            self._promise((*entry.key, INGRESS, "", *asked, entry.uplink, entry.inward, 0, None))

    def leave(self, key: Key) -> None:
        """Undo enter(): what is promised is free again, and the lease is as it was.

        To be called within a transaction.
        """
        unknown = ", ".join(f"{name} = NULL" for name in _ENTERED)
        own = "address = CASE WHEN host_veth IS NULL THEN NULL ELSE address END"
        self._database.execute(f"UPDATE attachment SET {unknown}, {own} WHERE {_KEY}", key)
        self._database.execute(
            f"UPDATE promise SET uplink = NULL, rate = 0, ceil = 0, minor = NULL WHERE {_KEY}", key
        )

    def bury(self, entry: Entry) -> None:
        """Let an attachment hold nothing any more. To be called within a transaction."""
        entry.bury()
        self.leave(entry.key)
        gone = "address = NULL, mtu = NULL, subnet = NULL, bridge = NULL, host_veth = NULL"
        self._database.execute(f"UPDATE attachment SET {gone} WHERE {_KEY}", entry.key)
        self.enter(entry)

    def set_end(self, entry: Entry) -> None:
        """Write down what an attachment's interface is known by."""
        known = "mac", "link", "host_mac", "inside", "number", "namespace"
        self._database.execute(
            f"UPDATE attachment SET {', '.join(f'{name} = ?' for name in known)} WHERE {_KEY}",
            (*(getattr(entry, name) for name in known), *entry.key),
        )

    # `rebuild`.

    def restore_leases(
        self,
        leases: Mapping[Key, Lease],
        last: Mapping[tuple[str, str], int],
        unknown: Iterable[tuple[str, Link]],
        changed: Mapping[Key, Mapping[str, int | None]],
    ) -> list[Key]:
        """Write down what `rebuild` has found, and return the leases that could not be.

        `last` is last_given(); `unknown` are networks' ports of which nobody knows whose they are: no other
        pod gets their address until they are gone; `changed` is changed(). To be called within a transaction,
        on a new ledger.
        """
        left = []
        for key, lease in leases.items():
            try:
                if lease.link is not None:
                    self._reserve(key[0], lease.link.subnet)
                self.add(key[0], lease)
            except CniError:
                left.append(key)
        for network, link in unknown:
            self._reserve(network, link.subnet)
            self._database.execute(
                "INSERT OR IGNORE INTO reserved VALUES (?, ?, ?)", (network, link.address, link.host_veth)
            )
        for key in changed.keys() & leases.keys():
            for direction, said in changed[key].items():
                self._say_changed(key, direction, said)
        for (network, subnet), address in last.items():
            self._last(network, subnet, address)
        return left

    def restore_entries(self, trees: list[Tree], entries: Iterable[Entry]) -> list[Entry]:
        """The same for trees, and for entries, whether they fit or not; those of another tree follow.

        Those with a minor of a class that is theirs come first.
        """
        left = []
        known = [tree.key for tree in trees]
        for tree in trees:
            self.replace_tree(None, tree)
            for address, minor in tree.peers.items():
                self._write_peer(tree, address, minor)
        for entry in sorted(entries, key=lambda entry: entry.minor is None):
            if known and entry.tree not in known:
                entry.uplink, _ = known[0]
            try:
                if entry.has_classes and entry.minor is None:
                    entry.minor = self._free_minor()
                self.enter(entry)
            except CniError:
                left.append(entry)
        return left

    def _promise(self, row: tuple[Any, ...]) -> None:
        """Write a promise down, or what it takes of an uplink; the ceiling stays as it was promised."""
        if not any(row[5:]):
            return
        self._database.execute(
            "INSERT INTO promise VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (network, container, interface, direction, peer) DO UPDATE SET guarantee ="
            " excluded.guarantee, answers = excluded.answers, uplink = excluded.uplink, rate = excluded.rate,"
            " ceil = excluded.ceil, minor = excluded.minor",
            row,
        )

    def _reserve(self, network: str, subnet: addresses.Subnet) -> None:
        # As in the paper, what no pod may get is written down up front; then one rule finds free addresses.
        if self.knows(network, subnet):
            return
        self._last(network, str(subnet), subnet.gateway)
        for address in subnet.reserved:
            self._database.execute("INSERT OR IGNORE INTO reserved VALUES (?, ?, NULL)", (network, address))

    def _last(self, network: str, subnet: str, address: int) -> None:
        self._database.execute("INSERT OR REPLACE INTO subnet VALUES (?, ?, ?)", (network, subnet, address))

    def _lease(self, row: tuple[Any, ...]) -> Lease:
        try:
            return lease_of(row)
        except (AttributeError, TypeError, ValueError) as error:
            raise damaged(self._path, f"not a lease: {row}") from error

    def _tree(self, row: tuple[Any, ...]) -> Tree:
        uplink, direction, capacity, reserve, ports, overhead, segment, fabric = row
        try:
            listed = tuple(map(int, ports.split()))
            numbers = overhead + 0, segment + 0
            return Tree(uplink, capacity + 0, reserve + 0, listed, *numbers, direction, fabric_of(fabric))
        except (AttributeError, TypeError, ValueError) as error:
            raise damaged(self._path, f"not a tree: {row}") from error

    def _heard(self, row: tuple[Any, ...]) -> Heard:
        import json

        try:
            taken, refused = json.loads(row[-1])
            return dict(taken), None if refused is None else dict(refused)
        except (TypeError, ValueError) as error:
            raise damaged(self._path, f"no annotations: {row}") from error

    def _entry(self, row: tuple[Any, ...]) -> Entry:
        for value, kinds in zip(row, _KINDS):
            if not isinstance(value, kinds):
                raise damaged(self._path, f"not an entry: {row}")
        return Entry(*row)

    def _first_free(self, network: str, start: int) -> int:
        # Index look-ups, then a walk along the run of taken addresses that `start` lies in.
        is_taken = (
            "EXISTS (SELECT 1 FROM attachment WHERE address = {0})"
            " OR EXISTS (SELECT 1 FROM reserved WHERE network = ?2 AND address = {0})"
        )
        if not self._database.execute(f"SELECT {is_taken.format('?1')}", (start, network)).fetchone()[0]:
            return start
        query = (
            "SELECT address + 1 FROM (SELECT address FROM attachment WHERE address >= ?1 UNION ALL"
            " SELECT address FROM reserved WHERE network = ?2 AND address >= ?1) AS taken"
            f" WHERE NOT ({is_taken.format('taken.address + 1')}) ORDER BY address LIMIT 1"
        )
        return int(self._database.execute(query, (start, network)).fetchone()[0])

    def _free_minor(self) -> int:
        first = self._database.execute(f"{_MINOR}?", (htb.FIRST_MINOR,)).fetchone()
        if first is None:
            return htb.FIRST_MINOR
        query = (
            "SELECT min(minor + 1) FROM promise AS taken WHERE direction = 'egress' AND minor IS NOT NULL"
            f" AND NOT EXISTS ({_MINOR}taken.minor + 1)"
        )
        minor = int(self._database.execute(query).fetchone()[0])
        if minor > htb.LAST_MINOR:
            raise CniError(NO_BANDWIDTH, "the node's tree has no class left")
        return minor
