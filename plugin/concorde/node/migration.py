"""What versions before kept: a store of leases for each network, and a ledger of the node's promises beside.

Both had an attachment. The ledger's version 5 has both in one row each; its file is the former ledger's, so
that takes one transaction, after which a version before refuses the ledger as made by a newer one. The stores
are then emptied, and refused likewise; when all are, the ledger has version 6. A call that is killed on the
way leaves the rest to the next one. What `rebuild` makes lacks the last version alone, which empties again.
"""

from __future__ import annotations

from .. import addresses
from ..database import Database, damaged, version_of
from ..leases import lease_of
from . import htb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from ..database import Execute, Step

    Row = dict[str, Any]
    Stores = Sequence[tuple[str, str]]

_LEDGER: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE tree (uplink TEXT NOT NULL, capacity INTEGER NOT NULL, reserve INTEGER NOT NULL,"
        " ports TEXT NOT NULL)",
        "CREATE TABLE entry (network TEXT NOT NULL, container TEXT NOT NULL, interface TEXT NOT NULL,"
        " pod TEXT NOT NULL, address INTEGER UNIQUE, way TEXT NOT NULL, port TEXT NOT NULL,"
        " guarantee INTEGER, rate INTEGER NOT NULL, ceil INTEGER NOT NULL, minor INTEGER UNIQUE,"
        " PRIMARY KEY (network, container, interface)) WITHOUT ROWID",
    ),
    (
        "ALTER TABLE entry ADD COLUMN mac TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE entry ADD COLUMN others TEXT NOT NULL DEFAULT ''",
    ),
    (
        # What a frame costs on the wire besides itself (bytes): Ethernet's, where nobody says otherwise.
        "ALTER TABLE tree ADD COLUMN overhead INTEGER NOT NULL DEFAULT 24",
        "ALTER TABLE tree ADD COLUMN segment INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE entry ADD COLUMN answers INTEGER",
    ),
    (
        "ALTER TABLE entry ADD COLUMN link INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE entry ADD COLUMN host_mac TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE entry ADD COLUMN inside INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE entry ADD COLUMN number INTEGER NOT NULL DEFAULT -1",
        "ALTER TABLE entry ADD COLUMN namespace TEXT NOT NULL DEFAULT ''",
    ),
)
_STORE: tuple[tuple[str, ...], ...] = (
    (
        # `container` is empty for an address that no pod may get.
        "CREATE TABLE lease (container TEXT NOT NULL, interface TEXT NOT NULL, enforcement TEXT,"
        " guarantee INTEGER, ceiling INTEGER, rate INTEGER, burst INTEGER, mtu INTEGER,"
        " address INTEGER UNIQUE, subnet TEXT, bridge TEXT, host_veth TEXT UNIQUE,"
        " PRIMARY KEY (container, interface)) WITHOUT ROWID",
        "CREATE TABLE network (subnet TEXT PRIMARY KEY, last INTEGER NOT NULL) WITHOUT ROWID",
    ),
    ("ALTER TABLE lease ADD COLUMN answers INTEGER",),
    ("DROP TABLE lease", "DROP TABLE network"),  # all is in the ledger
)
_LATER: tuple[tuple[str, ...], ...] = (
    (
        "ALTER TABLE tree ADD COLUMN fabric TEXT NOT NULL DEFAULT ''",
        # The class of what goes to another node without a promise.
        "CREATE TABLE peer (uplink TEXT NOT NULL, address INTEGER NOT NULL, minor INTEGER NOT NULL,"
        " PRIMARY KEY (uplink, address), UNIQUE (uplink, minor)) WITHOUT ROWID",
        # What the configuration goes on saying (bits per second) where another guarantee has been given.
        "CREATE TABLE changed (network TEXT NOT NULL, container TEXT NOT NULL, interface TEXT NOT NULL,"
        " guarantee INTEGER, PRIMARY KEY (network, container, interface)) WITHOUT ROWID",
    ),
    (
        # Of what pods receive, too.
        "ALTER TABLE changed RENAME TO sent",
        "CREATE TABLE changed (network TEXT NOT NULL, container TEXT NOT NULL, interface TEXT NOT NULL,"
        " direction TEXT NOT NULL, guarantee INTEGER,"
        " PRIMARY KEY (network, container, interface, direction)) WITHOUT ROWID",
        "INSERT INTO changed SELECT network, container, interface, 'egress', guarantee FROM sent",
        "DROP TABLE sent",
    ),
    # Which of the pod's annotations were followed last, and which were refused since (`annotated`).
    ("ALTER TABLE attachment ADD COLUMN heard TEXT",),
)
_LAST_STORE, _EMPTIED = 2, 3  # versions
_ENTRY = (
    "network, container, interface, pod, address, way AS host_interface, port, guarantee, rate AS takes,"
    " ceil, minor, mac, others, answers, link, host_mac, inside, number, namespace"
)
_LEASE = (
    "container, interface, enforcement, guarantee, ceiling, rate, burst, answers, mtu, address, subnet,"
    " bridge, host_veth"
)
_OF_ATTACHMENT = (
    "network, container, interface, pod, enforcement, rate, burst, address, mtu, subnet, bridge, host_veth,"
    " host_interface, port, mac, others, link, host_mac, inside, number, namespace"
)
_OF_PROMISE = "network, container, interface, guarantee, answers, ceiling, uplink, takes, ceil, minor"
# Of the three enforcements there were, it alone kept promises on the uplink.
_RESERVES = "node"


class _Store(Database):
    """A network's leases."""

    def _steps(self) -> tuple[Step, ...]:
        return _STORE

    def read(self) -> tuple[list[Row], list[tuple[str, int]]]:
        """The leases and reserved addresses, and the last address given of each subnet.

        Raises CniError 107.
        """
        rows = self._database.execute(f"SELECT {_LEASE} FROM lease")
        last = self._database.execute("SELECT subnet, last FROM network")
        for row in rows:
            try:
                if row[0] != "":
                    lease_of(("", *row))
                else:
                    addresses.dotted(row[9])
            except (AttributeError, OverflowError, TypeError, ValueError) as error:
                raise damaged(self._path, f"not a lease: {row}") from error
        return [dict(zip(_LEASE.split(", "), row)) for row in rows], last


def read(path: str, reading: bool = False) -> tuple[list[Row], list[tuple[str, int]]]:
    """What a store tells; nothing if it is emptied. Raises CniError 107 and 108."""
    is_emptied = version_of(path, reading) > _LAST_STORE
    store = _Store(path, _EMPTIED if is_emptied else _LAST_STORE, reading)
    try:
        return ([], []) if is_emptied else store.read()
    finally:
        store.close()


def steps(tables: Iterable[str], stores: Stores, reading: bool) -> tuple[Step, ...]:
    """What makes of any ledger the present one, and of none, where there are stores or not."""

    def take_over(execute: Execute) -> None:
        _take_over(execute, tables, stores, reading)

    def retire(_execute: Execute) -> None:
        for _, path in () if reading else stores:
            _Store(path, _EMPTIED).close()

    later = [step for one in _LATER for step in (one, retire)]
    return (*_LEDGER, take_over, retire, *later)


def _take_over(execute: Execute, tables: Iterable[str], stores: Stores, reading: bool) -> None:
    trees = execute("SELECT uplink, capacity, reserve, ports, overhead, segment FROM tree")
    columns = [column.rpartition(" ")[2] for column in _ENTRY.split(", ")]
    entries = [dict(zip(columns, row)) for row in execute(f"SELECT {_ENTRY} FROM entry")]
    for statement in ("DROP TABLE tree", "DROP TABLE entry", *tables):
        execute(statement)
    for tree in trees:
        execute("INSERT OR REPLACE INTO tree VALUES (?, 'egress', ?, ?, ?, ?, ?)", tree)
    rows = {(row["network"], row["container"], row["interface"]): row for row in entries}
    for network, path in stores:
        for lease in _leases(execute, network, path, reading):
            key = network, lease["container"], lease["interface"]
            rows[key] = _joined(lease, rows.get(key, {}))
    uplink = trees[0][0] if trees else ""
    _number(rows.values())
    # Who is entered comes first: should one address be two pods', it is theirs.
    for row in sorted(rows.values(), key=lambda row: "host_interface" not in row):
        _write(execute, row, uplink)


def _leases(execute: Execute, network: str, path: str, reading: bool) -> list[Row]:
    """What a store tells of pods; what it tells of addresses is written down."""
    leases, last = read(path, reading)
    for subnet, address in last:
        execute("INSERT INTO subnet VALUES (?, ?, ?)", (network, subnet, address))
    for lease in leases:
        if not lease["container"]:
            execute("INSERT INTO reserved VALUES (?, ?, ?)", (network, lease["address"], lease["host_veth"]))
    return [{"network": network, **lease} for lease in leases if lease["container"]]


def _joined(lease: Row, entry: Row) -> Row:
    """One row of the two. What a version attached that entered guarantees only follows from its lease."""
    if not entry and lease["host_veth"] is not None and lease["enforcement"] != _RESERVES:
        mac = addresses.pod_mac(lease["address"])
        entry = {"host_interface": lease["bridge"], "port": lease["host_veth"], "mac": mac, "others": ""}
        entry |= {"link": 0, "host_mac": "", "inside": 0, "number": -1, "namespace": ""}
    return {
        **entry,
        **{name: value for name, value in lease.items() if value is not None or name not in entry},
    }


def _number(rows: Iterable[Row]) -> None:
    """Give minors to those that a version entered which had classes for promises only."""
    taken = {row.get("minor") for row in rows}
    free = (minor for minor in range(htb.FIRST_MINOR, htb.LAST_MINOR + 1) if minor not in taken)
    for row in rows:
        is_told = row.get("host_interface") and row["address"] is not None
        if row.get("ceil") and is_told and row["minor"] is None:
            row["minor"] = next(free, None)


def _write(execute: Execute, row: Row, uplink: str) -> None:
    row = {"pod": "", "takes": 0, "ceil": 0, **row}
    taken = "SELECT 1 FROM attachment WHERE address = ? OR host_veth = ?"
    if execute(taken, (row.get("address"), row.get("host_veth"))):
        row = {**row, **dict.fromkeys(("address", "mtu", "subnet", "bridge", "host_veth"))}
    columns = _OF_ATTACHMENT.split(", ")
    places = ", ".join("?" * len(columns))
    values = [row.get(column) for column in columns]
    execute(f"INSERT INTO attachment ({_OF_ATTACHMENT}) VALUES ({places})", values)
    row["uplink"] = uplink if row["ceil"] or row["takes"] else None
    promise = [row.get(column) for column in _OF_PROMISE.split(", ")]
    if any(promise[3:]):
        execute("INSERT INTO promise VALUES (?, ?, ?, 'egress', '', ?, ?, ?, ?, ?, ?, ?)", promise)
