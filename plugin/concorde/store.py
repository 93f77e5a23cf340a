"""The store: the leases of one network on this node.

The paper's allocated-IP file, and the stand-in for its MANO: `bandwidth_allocate` is the guarantee written
with an address, `bandwidth_collect` its removal.
"""

from __future__ import annotations

import os

from . import addresses, names, state_files
from .cni import ALREADY_ATTACHED, NO_FREE_ADDRESS, CniError
from .configuration import ENFORCEMENTS
from .database import Conflict, Database, damaged
from .leases import Lease, Link, Terms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

_TO_VERSION_1 = (
    """CREATE TABLE lease (
        container TEXT NOT NULL,    -- CNI_CONTAINERID; empty for an address no pod may get
        interface TEXT NOT NULL,    -- CNI_IFNAME
        enforcement TEXT,
        guarantee INTEGER,          -- bits per second
        ceiling INTEGER,            -- bits per second
        rate INTEGER,               -- of the class, bits per second of layer 2
        burst INTEGER,              -- bytes
        mtu INTEGER,                -- bytes; from here on null when another plugin made the interface
        address INTEGER UNIQUE,
        subnet TEXT,
        bridge TEXT,
        host_veth TEXT UNIQUE,
        PRIMARY KEY (container, interface)
    ) WITHOUT ROWID""",
    # The next address is sought after the last one given, so that a new pod does not at once inherit the
    # address, and the peers' connections, of one that just ended.
    "CREATE TABLE network (subnet TEXT PRIMARY KEY, last INTEGER NOT NULL) WITHOUT ROWID",
)
# What the pod's acknowledgements may take for sure (bits per second).
_TO_VERSION_2 = ("ALTER TABLE lease ADD COLUMN answers INTEGER",)
_COLUMNS = (
    "container, interface, enforcement, guarantee, ceiling, rate, burst, answers,"
    " mtu, address, subnet, bridge, host_veth"
)
_SELECT = f"SELECT {_COLUMNS} FROM lease WHERE container != ''"


class Store(Database):
    """A connection to a network's leases. A block `with store:` is one writing transaction."""

    def __init__(self, directory: str, new: bool = False, reading: bool = False) -> None:
        """Open or create the store. Raises CniError 107 and 108."""
        file = path(directory) if not new else path(directory) + state_files.NEW
        super().__init__(file, (_TO_VERSION_1, _TO_VERSION_2), reading)

    def knows(self, subnet: addresses.Subnet) -> bool:
        """Whether it has given addresses of a subnet before."""
        query = "SELECT 1 FROM network WHERE subnet = ?"
        return self._database.execute(query, (str(subnet),)).fetchone() is not None

    def has_pods(self) -> bool:
        """Whether there is a lease."""
        return (
            self._database.execute("SELECT 1 FROM lease WHERE container != '' LIMIT 1").fetchone() is not None
        )

    def has_pods_on(self, bridge: str) -> bool:
        """Whether a lease tells of a port of a bridge."""
        query = "SELECT 1 FROM lease WHERE bridge = ? LIMIT 1"
        return self._database.execute(query, (bridge,)).fetchone() is not None

    def next_address(self, subnet: addresses.Subnet) -> int:
        """The free address after the one given last. Raises CniError 102.

        To be called within the transaction that adds the lease.
        """
        row = self._database.execute("SELECT last FROM network WHERE subnet = ?", (str(subnet),)).fetchone()
        if row is None:
            self._reserve(subnet)
        last = subnet.gateway if row is None else row[0]
        if last not in subnet:
            raise damaged(self._path, f"the last address given of {subnet} is not in it")
        for start in (last + 1, subnet.network):
            address = self._first_free(start)
            if address < subnet.broadcast:
                self._database.execute("UPDATE network SET last = ? WHERE subnet = ?", (address, str(subnet)))
                return address
        raise CniError(NO_FREE_ADDRESS, f"all {subnet.size} addresses of subnet {subnet} are in use")

    def add(self, lease: Lease) -> None:
        """Write down a lease. Raises CniError 103 when the attachment or its link's name has one."""
        row = [lease.container, lease.interface, *_of_terms(lease.terms), *_of_link(lease.link)]
        places = ", ".join("?" * len(row))
        try:
            self._database.execute(f"INSERT INTO lease ({_COLUMNS}) VALUES ({places})", row)
        except Conflict as error:
            raise CniError(
                ALREADY_ATTACHED, f"container {lease.container} has {lease.interface} in this network already"
            ) from error

    def find(self, container: str, interface: str) -> Lease | None:
        """The lease of an attachment."""
        query = _SELECT + " AND container = ? AND interface = ?"
        row = self._database.execute(query, (container, interface)).fetchone()
        return None if row is None else self._lease(row)

    def leases(self) -> list[Lease]:
        """All leases of the network."""
        return [self._lease(row) for row in self._database.execute(_SELECT)]

    def drop(self, container: str, interface: str) -> None:
        """Forget a lease, if there is one; its address and its bandwidth are free again."""
        self._database.execute(
            "DELETE FROM lease WHERE container = ? AND interface = ?", (container, interface)
        )

    def drop_port(self, host_veth: str) -> None:
        """Forget the address of a port that no lease tells of."""
        self._database.execute("DELETE FROM lease WHERE container = '' AND host_veth = ?", (host_veth,))

    def last_given(self) -> dict[str, int]:
        """For each subnet the address given last."""
        rows = self._database.execute("SELECT subnet, last FROM network")
        for row in rows:
            try:
                if row[1] in addresses.parse_subnet(row[0]):
                    continue
            except (AttributeError, TypeError, ValueError):
                pass
            raise damaged(self._path, f"not a subnet: {row}")
        return dict(rows)

    def restore(
        self, leases: Iterable[Lease], last: Mapping[str, int], unknown: Iterable[Link]
    ) -> list[Lease]:
        """Write down what `rebuild` has found, and return the leases that could not be.

        `last` is last_given(); `unknown` are ports of which nobody knows whose they are: no other
        pod gets their address until they are gone. To be called within a transaction, on a new store.
        """
        left = []
        for lease in leases:
            try:
                if lease.link is not None and not self.knows(lease.link.subnet):
                    self._reserve(lease.link.subnet)
                self.add(lease)
            except CniError:
                left.append(lease)
        for link in unknown:
            if not self.knows(link.subnet):
                self._reserve(link.subnet)
            row = "", addresses.dotted(link.address), link.address, link.host_veth
            self._database.execute(
                "INSERT OR IGNORE INTO lease (container, interface, address, host_veth) VALUES (?, ?, ?, ?)",
                row,
            )
        for subnet, address in last.items():
            self._database.execute("INSERT OR REPLACE INTO network VALUES (?, ?)", (subnet, address))
        return left

    def free_addresses(self, subnet: addresses.Subnet) -> int:
        """How many more pods the subnet has addresses for."""
        query = "SELECT count(*) FROM lease WHERE container != '' AND address BETWEEN ? AND ?"
        (taken,) = self._database.execute(query, (subnet.network, subnet.broadcast)).fetchone()
        return subnet.size - int(taken)

    def _reserve(self, subnet: addresses.Subnet) -> None:
        # As in the paper, what no pod may get is written down up front; then one rule finds free addresses.
        self._database.execute("INSERT INTO network VALUES (?, ?)", (str(subnet), subnet.gateway))
        for address in subnet.reserved:
            self._database.execute(
                "INSERT OR IGNORE INTO lease (container, interface, address) VALUES ('', ?, ?)",
                (addresses.dotted(address), address),
            )

    def _lease(self, row: tuple[Any, ...]) -> Lease:
        try:
            return _lease(row)
        except (AttributeError, TypeError, ValueError) as error:
            raise damaged(self._path, f"not a lease: {row}") from error

    def _first_free(self, start: int) -> int:
        # Two index look-ups, then a walk along the run of taken addresses that `start` lies in.
        if self._database.execute("SELECT 1 FROM lease WHERE address = ?", (start,)).fetchone() is None:
            return start
        query = (
            "SELECT address + 1 FROM lease AS taken WHERE address >= ? AND NOT EXISTS"
            " (SELECT 1 FROM lease WHERE address = taken.address + 1) ORDER BY address LIMIT 1"
        )
        return int(self._database.execute(query, (start,)).fetchone()[0])


def stores(state: str) -> list[tuple[str, str]]:
    """Name and directory of each network of a state directory that has a store."""
    return [
        (name, f"{state}/{name}")
        for name in sorted(os.listdir(state))
        if names.is_identifier(name) and os.path.lexists(f"{state}/{name}/{state_files.STORE}")
    ]


def _of_terms(terms: Terms) -> tuple[Any, ...]:
    return terms.enforcement, terms.guarantee, terms.ceiling, terms.rate, terms.burst, terms.answers


def _of_link(link: Link | None) -> tuple[Any, ...]:
    if link is None:
        return (None,) * 5
    return link.mtu, link.address, str(link.subnet), link.bridge, link.host_veth


def _lease(row: tuple[Any, ...]) -> Lease:
    """The lease of a row. Raises AttributeError, TypeError and ValueError for what ADD never wrote."""
    container, interface, enforcement, *rest = row
    numbers, (subnet, bridge, host_veth) = rest[:7], rest[7:]
    if not (names.is_identifier(container) and names.is_interface(interface) and enforcement in ENFORCEMENTS):
        raise ValueError
    if not all(number is None or isinstance(number, int) for number in numbers):
        raise ValueError
    mtu, address = numbers[5:]
    link = None
    if address is not None:
        if not (names.is_interface(bridge) and names.is_interface(host_veth) and isinstance(mtu, int)):
            raise ValueError
        if not 0 <= address < 1 << 32:
            raise ValueError
        link = Link(interface, mtu, address, addresses.parse_subnet(subnet), bridge, host_veth)
    return Lease(container, interface, Terms(enforcement, *numbers[:5]), link)


def path(directory: str) -> str:
    """Where the store of a network lies."""
    return f"{directory}/{state_files.STORE}"
