"""Write a ledger's content as versions before kept it; to be run on the node: ROOT STATE VERSION.

A store of leases in each network's directory, and a ledger of that version, or none if it is 0.
"""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
sys.path.insert(0, f"{sys.argv[1]}/plugin")

from concorde.leases import Link
from concorde.node import ledger, migration
from concorde.node.ledger import Ledger
from concorde.state_files import STORE

STORE_VERSION = 2


def main(state: str, version: int) -> None:
    """Read the ledger whole, and write the files in its place."""
    path = ledger.path(f"{state}/node")
    book = Ledger(f"{state}/node")
    trees, entries, leases, last = book.trees(), book.entries(), book.leases(), book.last_given()
    reserved = book._database.execute("SELECT network, address, port FROM reserved")
    book.close()
    Path(path).unlink()
    for network in sorted({key[0] for key in leases} | {key[0] for key in last}):
        store = made(f"{state}/{network}/{STORE}", migration._STORE, STORE_VERSION)
        for (of, _, _), lease in leases.items():
            if of == network:
                insert(store, "lease", {**vars(lease), **vars(lease.terms), **vars_of_link(lease.link)})
        for of, address, port in reserved:
            if of == network:
                row = {"container": "", "interface": str(address), "address": address, "host_veth": port}
                insert(store, "lease", row)
        for (of, subnet), address in last.items():
            if of == network:
                insert(store, "network", {"subnet": subnet, "last": address})
        store.close()
    if version:
        file = made(path, migration._LEDGER, version)
        for tree in trees:
            insert(file, "tree", {**vars(tree), "ports": " ".join(map(str, tree.ports))})
        for entry in entries:
            if version > 1 or entry.minor is not None:
                insert(file, "entry", {**vars(entry), "way": entry.host_interface})
        file.close()


def vars_of_link(link: Link | None) -> dict[str, object]:
    return {**vars(link), "subnet": str(link.subnet)} if link is not None else {}


def made(path: str, steps: tuple[tuple[str, ...], ...], version: int) -> sqlite3.Connection:
    file = sqlite3.connect(path, isolation_level=None)
    for statement in (one for step in steps[:version] for one in step):
        file.execute(statement)
    file.execute(f"PRAGMA user_version = {version}")
    Path(path).chmod(0o600)
    return file


def insert(file: sqlite3.Connection, table: str, row: dict[str, object]) -> None:
    """Those of a row that the table has columns for."""
    columns = [column[1] for column in file.execute(f"PRAGMA table_info({table})") if column[1] in row]
    places = ", ".join("?" * len(columns))
    values = [row[column] for column in columns]
    file.execute(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})", values)


if __name__ == "__main__":
    main(sys.argv[2], int(sys.argv[3]))
