"""The ledger: what is promised on the node's uplink, by all networks of the node together.

The paper leaves it to the masters to promise no more than a link holds; but two masters promise from the same
link of an overlapped worker. So this is one file per node, and a promise that does not fit is refused.
"""

from __future__ import annotations

from .. import state_files
from ..cni import ALREADY_ATTACHED, DAMAGED, NO_BANDWIDTH, UPLINK_CONFLICT, CniError
from ..database import Conflict, Database, damaged, existing
from . import htb, messages
from .records import Entry, Tree, promised

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_TO_VERSION_1 = (
    # One row, in bits per second of the wire. The entries' rates are of layer 2 on the uplink.
    "CREATE TABLE tree (uplink TEXT NOT NULL, capacity INTEGER NOT NULL, reserve INTEGER NOT NULL,"
    " ports TEXT NOT NULL)",
    """CREATE TABLE entry (
        network TEXT NOT NULL,
        container TEXT NOT NULL,
        interface TEXT NOT NULL,
        pod TEXT NOT NULL,          -- namespace/name, or empty
        address INTEGER UNIQUE,     -- null when another plugin gave no IPv4 address
        way TEXT NOT NULL,          -- the interface its packets come in by
        port TEXT NOT NULL,         -- of the bridge, or empty
        guarantee INTEGER,          -- bits per second as promised; null without a promise here
        rate INTEGER NOT NULL,      -- what that takes on the uplink
        ceil INTEGER NOT NULL,
        minor INTEGER UNIQUE,       -- of the classes; null without any
        PRIMARY KEY (network, container, interface)
    ) WITHOUT ROWID""",
)
_TO_VERSION_2 = (
    "ALTER TABLE entry ADD COLUMN mac TEXT NOT NULL DEFAULT ''",  # the pod's hardware address
    # Further addresses of the pod's interface, IPv4 and IPv6, separated by blanks.
    "ALTER TABLE entry ADD COLUMN others TEXT NOT NULL DEFAULT ''",
)
_TO_VERSION_3 = (
    # What a frame costs on the wire besides itself (bytes): Ethernet's, where nobody says otherwise.
    "ALTER TABLE tree ADD COLUMN overhead INTEGER NOT NULL DEFAULT 24",
    # The largest frame (bytes) that offloaded packets become before the tree, or 0.
    "ALTER TABLE tree ADD COLUMN segment INTEGER NOT NULL DEFAULT 0",
    # What is promised to the pod's acknowledgements (bits per second); null without. `rate` has it in it.
    "ALTER TABLE entry ADD COLUMN answers INTEGER",
)
# What an interface that another plugin made is known by itself (records.Entry).
_TO_VERSION_4 = (
    "ALTER TABLE entry ADD COLUMN link INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE entry ADD COLUMN host_mac TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE entry ADD COLUMN inside INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE entry ADD COLUMN number INTEGER NOT NULL DEFAULT -1",
    "ALTER TABLE entry ADD COLUMN namespace TEXT NOT NULL DEFAULT ''",
)
_STEPS = (_TO_VERSION_1, _TO_VERSION_2, _TO_VERSION_3, _TO_VERSION_4)
_OF_TREE = "uplink, capacity, reserve, ports, overhead, segment"
_COLUMNS = (
    "network, container, interface, pod, address, way, port, guarantee, rate, ceil, minor, mac, others,"
    " answers, link, host_mac, inside, number, namespace"
)
_NUMBER = (int, type(None))
_KINDS: tuple[Any, ...] = (  # of the columns
    *(str, str, str, str, _NUMBER, str, str),
    *(_NUMBER, int, int, _NUMBER, str, str, _NUMBER),
    *(int, str, int, int, str),
)
_KEY = "network = ? AND container = ? AND interface = ?"


def path(directory: str) -> str:
    """Where the ledger of a node directory lies."""
    return f"{directory}/{state_files.LEDGER}"


def opened(directory: str) -> Ledger | None:
    """The ledger of a node directory, if there is one. Raises CniError 107 and 108."""
    return existing(path(directory), lambda: Ledger(directory))


class Ledger(Database):
    """A connection to the node's ledger. A block `with ledger:` is one writing transaction."""

    def __init__(self, directory: str, new: bool = False, reading: bool = False) -> None:
        """Open or create it. Raises CniError 107 and 108."""
        super().__init__(path(directory) if not new else path(directory) + state_files.NEW, _STEPS, reading)

    def tree(self) -> Tree | None:
        """The tree's parameters, once there was an ADD."""
        row = self._database.execute(f"SELECT {_OF_TREE} FROM tree").fetchone()
        if row is None:
            return None
        uplink, capacity, reserve, ports, overhead, segment = row
        try:
            listed = tuple(map(int, ports.split()))
            return Tree(uplink, capacity + 0, reserve + 0, listed, overhead + 0, segment + 0)
        except (AttributeError, TypeError, ValueError) as error:
            raise damaged(self._path, f"not a tree: {row}") from error

    def set_tree(self, tree: Tree | None) -> None:
        """Write down the tree's parameters, or that there is none."""
        self._database.execute("DELETE FROM tree")
        if tree is not None:
            ports = " ".join(map(str, tree.ports))
            row = tree.uplink, tree.capacity, tree.reserve, ports, tree.overhead, tree.segment
            self._database.execute(f"INSERT INTO tree ({_OF_TREE}) VALUES (?, ?, ?, ?, ?, ?)", row)

    def entries(self) -> list[Entry]:
        """All attachments, ordered by their key."""
        return [self._entry(row) for row in self._database.execute(f"SELECT {_COLUMNS} FROM entry")]

    def find(self, key: tuple[str, str, str]) -> Entry | None:
        """An attachment's entry."""
        row = self._database.execute(f"SELECT {_COLUMNS} FROM entry WHERE {_KEY}", key).fetchone()
        return None if row is None else self._entry(row)

    def beside(self, entry: Entry) -> list[Entry]:
        """Those that have the same end on the node as another one, or its address."""
        query = (
            f"SELECT {_COLUMNS} FROM entry WHERE NOT ({_KEY})"
            " AND (CASE port WHEN '' THEN way ELSE port END = ? AND way != '' OR address = ?)"
        )
        rows = self._database.execute(query, (*entry.key, entry.end, entry.address))
        return [self._entry(row) for row in rows]

    def promised(self) -> int:
        """The sum of what is promised (bits per second)."""
        (total,) = self._database.execute("SELECT total(rate) FROM entry").fetchone()
        return int(total)

    def require(self, tree: Tree, network: str) -> None:
        """Refuse a configuration that contradicts what is already promised on the node.

        One that only its own network has relied on so far may change, if what is promised still fits.
        Raises CniError 105 and 106.
        """
        former = self.tree()
        if former is None or former == tree:
            return
        entries = self.entries()
        holders = {entry.network for entry in entries if entry.rate}
        if holders - {network} or (holders and former.uplink != tree.uplink):
            raise CniError(UPLINK_CONFLICT, messages.contradiction(former, tree, holders))
        if promised(entries) > tree.promisable:
            raise CniError(NO_BANDWIDTH, messages.shrunk(tree, entries))

    def admit(self, tree: Tree | None, entry: Entry) -> None:
        """Write down an attachment, and the minor of its class into the entry, if its promise fits.

        Without a tree it has none. To be called within a transaction. Raises CniError 105 when it does not
        fit, 106 when the node's tree is configured otherwise, 103 when it is written down already.
        """
        if tree is not None:
            self.require(tree, entry.network)
            # What was promised before may be more, of a version that promised more of the same capacity.
            if entry.rate > max(0, tree.promisable - self.promised()):
                raise CniError(NO_BANDWIDTH, messages.refusal(tree, self.entries(), entry))
            self.set_tree(tree)
        if entry.has_classes:
            entry.minor = self._free_minor()
        # As adopt() may have found it a moment ago, when its lease was there and its entry was not.
        self._database.execute(
            f"DELETE FROM entry WHERE {_KEY} AND rate = 0 AND port != '' AND port = ? AND address = ?",
            (*entry.key, entry.port, entry.address),
        )
        self._write(entry)

    def restore(self, tree: Tree | None, entries: Iterable[Entry]) -> list[Entry]:
        """Write down what `rebuild` has found, whether it fits or not, and return what could not be.

        Those with a minor of a class that is theirs come first. To be called within a transaction, on a new
        ledger.
        """
        self.set_tree(tree)
        left = []
        for entry in sorted(entries, key=lambda entry: entry.minor is None):
            try:
                if entry.has_classes and entry.minor is None:
                    entry.minor = self._free_minor()
                self._write(entry)
            except CniError:
                left.append(entry)
        return left

    def _write(self, entry: Entry) -> None:
        try:
            self._insert("", entry)
        except Conflict as error:
            # Where this plugin gave the address, its store should have known.
            code = DAMAGED if entry.is_ours and self.find(entry.key) is None else ALREADY_ATTACHED
            remedy = ", and the store has no record of it: run concorde rebuild" if code == DAMAGED else ""
            raise CniError(code, messages.taken(entry, self.entries()) + remedy) from error

    def adopt(self, entry: Entry) -> None:
        """Write down an attachment that nobody has entered yet. To be called within a transaction."""
        self._insert("OR IGNORE", entry)

    def number(self) -> None:
        """Give minors to those that a version entered which had classes for promises only.

        To be called within a transaction.
        """
        for entry in self.entries():
            if entry.has_classes and entry.minor is None:
                row = self._free_minor(), *entry.key
                self._database.execute(f"UPDATE entry SET minor = ? WHERE {_KEY}", row)

    def set_mac(self, key: tuple[str, str, str], mac: str) -> None:
        """Write down an attachment's hardware address."""
        self._database.execute(f"UPDATE entry SET mac = ? WHERE {_KEY}", (mac, *key))

    def set_end(self, entry: Entry) -> None:
        """Write down what an attachment's interface is known by itself."""
        row = entry.link, entry.host_mac, entry.inside, entry.number, entry.namespace
        self._database.execute(
            f"UPDATE entry SET link = ?, host_mac = ?, inside = ?, number = ?, namespace = ? WHERE {_KEY}",
            (*row, *entry.key),
        )

    def bury(self, entry: Entry) -> None:
        """Let an attachment hold nothing any more. To be called within a transaction."""
        entry.bury()
        self.drop(entry.key)
        self._insert("", entry)

    def drop(self, key: tuple[str, str, str]) -> None:
        """Forget an attachment, if it is there; its bandwidth is free again."""
        self._database.execute(f"DELETE FROM entry WHERE {_KEY}", key)

    def _insert(self, otherwise: str, entry: Entry) -> None:
        row: list[Any] = [getattr(entry, column) for column in _COLUMNS.split(", ")]
        places = ", ".join("?" * len(row))
        self._database.execute(f"INSERT {otherwise} INTO entry ({_COLUMNS}) VALUES ({places})", row)

    def _entry(self, row: tuple[Any, ...]) -> Entry:
        for value, kinds in zip(row, _KINDS):
            if not isinstance(value, kinds):
                raise damaged(self._path, f"not an entry: {row}")
        return Entry(*row)

    def _free_minor(self) -> int:
        query = (
            "SELECT coalesce(min(minor + 1), ?1) FROM entry AS taken WHERE minor IS NOT NULL AND NOT EXISTS"
            " (SELECT 1 FROM entry WHERE minor = taken.minor + 1)"
        )
        first = self._database.execute("SELECT 1 FROM entry WHERE minor = ?", (htb.FIRST_MINOR,)).fetchone()
        if first is None:
            return htb.FIRST_MINOR
        minor = int(self._database.execute(query, (htb.FIRST_MINOR,)).fetchone()[0])
        if minor > htb.LAST_MINOR:
            raise CniError(NO_BANDWIDTH, "the node's tree has no class left")
        return minor
