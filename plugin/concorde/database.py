"""The plugin's SQLite files: a network's leases, and the node's ledger.

SQLite, because invocations run at the same time and may be killed at any instruction. The files lie on /run
and so end with the kernel state they describe; that is why nothing waits for a disk (`synchronous` is off: a
killed process loses nothing, only a crash of the kernel would).
"""

from __future__ import annotations

import os

# Not sqlite3, which is this and adapters for dates: loading datetime costs each ADD 2 ms.
from _sqlite3 import connect

from .cni import INTERNAL, CniError

_PATIENCE_SECONDS = 30


class Database:
    """A connection to one of them. A block `with database:` is one writing transaction."""

    def __init__(self, path: str, steps: tuple[tuple[str, ...], ...]) -> None:
        """Open or create it, and take the steps of its schema that it has not taken yet.

        Raises CniError 100 if a newer version of the plugin made it.
        """
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        self._database = connect(path, timeout=_PATIENCE_SECONDS, isolation_level=None)
        self._database.execute("PRAGMA synchronous = OFF")
        if self._version() < len(steps):
            with self:
                # Asked again: another invocation may have taken them since.
                for version in range(self._version(), len(steps)):
                    for statement in (*steps[version], f"PRAGMA user_version = {version + 1}"):
                        self._database.execute(statement)
        if self._version() > len(steps):
            raise CniError(INTERNAL, f"{path} was made by a newer version of this plugin")

    def __enter__(self) -> None:
        self._database.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, *_: object) -> None:
        self._database.execute("COMMIT" if kind is None else "ROLLBACK")

    def _version(self) -> int:
        return int(self._database.execute("PRAGMA user_version").fetchone()[0])
