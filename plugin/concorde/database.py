"""The plugin's SQLite file, which is the node's ledger; and those that a version before had beside it.

SQLite, because invocations run at the same time and may be killed at any instruction. The file lies on /run
and so ends with the kernel state it describes; that is why nothing waits for a disk (`synchronous` is off: a
killed process loses nothing, only a crash of the kernel would).

Whatever is wrong with a file is said at once, with its path and what to do: who trusts a damaged one gives an
address twice. `concorde rebuild` makes it again. To look takes longer the more is in it; so a transaction on
a file that was right leaves it with a time that nobody else gives it, and one that has it is believed.
"""

from __future__ import annotations

import os
from sys import modules


class _Functools:
    """What _sqlite3 takes of functools, which takes 2 ms to load (CPython, Modules/_sqlite/module.c)."""

    @staticmethod
    def lru_cache(size: int) -> Any:
        from _functools import _lru_cache_wrapper  # type: ignore[import-not-found]

        return lambda function: _lru_cache_wrapper(function, size, False, None)


# Not sqlite3, which is this and adapters for dates: loading datetime costs each ADD 2 ms.
try:
    modules.setdefault("functools", _Functools)  # type: ignore[arg-type]
    try:
        from _sqlite3 import Connection, Error, IntegrityError, connect
    finally:
        if modules["functools"] is _Functools:  # type: ignore[comparison-overlap]
            del modules["functools"]
except (ImportError, AttributeError):  # they are Python's own, and may go
    from sqlite3 import Connection, Error, IntegrityError, connect

from . import state_files  # noqa: E402
from .cni import DAMAGED, IO_FAILURE, TRY_AGAIN, UNUSABLE, CniError  # noqa: E402

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    T = TypeVar("T")
    Execute = Callable[..., "_Rows"]
    Step = tuple[str, ...] | Callable[[Execute], None]

Conflict = IntegrityError  # with a row that is there
_PATIENCE_SECONDS = 30
_LEFT_RIGHT = 1  # modification time, nanoseconds since 1970


class Database:
    """A connection to it. A block `with database:` is one writing transaction.

    `latest` is the version of its tables, and _steps() says how to get there: the first step leads from an
    empty file to version 1, the second from there to version 2, and so on; an older file takes those it
    lacks, each in a transaction of its own. A step is SQL statements, or a function that is given what
    executes them.
    """

    def __init__(self, path: str, latest: int, reading: bool = False) -> None:
        """Open or create it; for `reading`, take a copy into memory, and leave the file, or none, as it is.

        Raises CniError 107 if it is damaged, 108 if it is not ours or a newer version of the plugin made it.
        """
        self._path = path
        self._reading = reading
        if reading:
            self._database = _Connection(path, reading=True)
        else:
            state_files.directory(os.path.dirname(path))
            state_files.database(path)
            self._database = _Connection(path)
            self._database.execute("PRAGMA synchronous = OFF")
        self._right_at, self._is_right = self._modified(), False
        if reading or self._right_at != _LEFT_RIGHT:
            # All of it, with the indexes: 1.4 ms with 1,000 pods.
            found = self._database.execute("PRAGMA integrity_check(1)").fetchone()
            if found != ("ok",):
                raise damaged(path, str(found and found[0]))
        self._bring_to(latest)

    def _bring_to(self, latest: int) -> None:
        version = self.version()
        if version < 0:
            raise damaged(self._path, "its version is negative")
        if version > latest:
            raise CniError(
                UNUSABLE,
                f"{self._path} was made by a newer version of this plugin: install that one, or"
                f" {remedy(self._path)} with this one",
            )
        if version < latest:
            for number, step in enumerate(self._steps()[:latest], 1):
                with self:
                    if self.version() < number:  # another invocation may have taken it since
                        self._take(step)
                        self._database.execute(f"PRAGMA user_version = {number}")

    def _steps(self) -> tuple[Step, ...]:
        raise NotImplementedError

    def _take(self, step: Step) -> None:
        if not isinstance(step, tuple):
            step(self._database.execute)
            return
        for statement in step:
            self._database.execute(statement)

    def __enter__(self) -> None:
        self._database.execute("BEGIN IMMEDIATE")
        self._is_right = self._modified() in (_LEFT_RIGHT, self._right_at)

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            self._database.execute("COMMIT" if kind is None else "ROLLBACK")
        except CniError:
            self._database.abandon()
            if kind is None:
                raise
            return
        if self._is_right and not self._reading:
            try:  # noqa: SIM105 - importing contextlib costs a millisecond
                os.utime(self._path, ns=(_LEFT_RIGHT, _LEFT_RIGHT), follow_symlinks=False)
            except OSError:
                pass  # the next one looks

    def _modified(self) -> int:
        """When somebody wrote to the file."""
        try:
            return os.lstat(self._path).st_mtime_ns
        except OSError:
            return 0

    def close(self) -> None:
        """End the connection; what was not committed is undone."""
        self._database.close()

    def version(self) -> int:
        """The version of its tables."""
        return int(self._database.execute("PRAGMA user_version").fetchone()[0])


def version_of(path: str, reading: bool = False) -> int:
    """The version of a file's tables, whatever that is. Raises CniError 11 and 107."""
    connection = _Connection(path, reading)
    try:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])
    finally:
        connection.close()


def damaged(path: str, problem: str) -> CniError:
    """The error for a file whose content cannot be trusted."""
    words = " ".join(problem.split())[:200]
    return CniError(DAMAGED, f"{path} is damaged ({words}): {remedy(path)}")


def remedy(path: str) -> str:
    """What to do about a file of the state that cannot be trusted."""
    from .configuration import DEFAULT_STATE

    state = os.path.dirname(os.path.dirname(path))
    return "run concorde rebuild" + (f" --state-dir {state}" if state != DEFAULT_STATE else "")


class _Rows(list["tuple[Any, ...]"]):
    """All that a statement gave."""

    def fetchone(self) -> Any:
        return self[0] if self else None


class _Connection:
    """SQLite's connection, whose errors name the file and say what to do."""

    def __init__(self, path: str, reading: bool = False) -> None:
        self._path = path
        try:
            self._connection = (_copied if reading else _opened)(path)
        except Error as error:
            raise _problem(path, error, reading) from error

    def execute(self, statement: str, values: Sequence[object] = ()) -> _Rows:
        """Run a statement to its end. Raises CniError 5, 11 and 107, and IntegrityError."""
        try:
            return _Rows(self._connection.execute(statement, values))
        except IntegrityError:
            raise
        except UnicodeError as error:  # Python's, of a name in the schema
            raise damaged(self._path, "malformed text") from error
        except Error as error:
            raise _problem(self._path, error) from error

    def abandon(self) -> None:
        """Undo the transaction, if SQLite has not done so itself, as it does when a disk is full."""
        if self._connection.in_transaction:
            try:  # noqa: SIM105 - importing contextlib costs a millisecond
                self._connection.execute("ROLLBACK")
            except Error:
                pass  # the journal stays, and the next connection undoes it

    def close(self) -> None:
        self._connection.close()


def _opened(path: str) -> Connection:
    return connect(path, timeout=_PATIENCE_SECONDS, isolation_level=None)


def _copied(path: str) -> Connection:
    """One moment's content, in memory: whoever writes waits for the copy alone. Raises Error and OSError."""
    memory = connect(":memory:", isolation_level=None)
    try:
        os.stat(path)
    except FileNotFoundError:
        return memory
    file = connect(f"file:{path}?mode=ro", uri=True, timeout=_PATIENCE_SECONDS)
    try:
        file.backup(memory)
    finally:
        file.close()
    return memory


def _problem(path: str, error: Error, reading: bool = False) -> CniError:
    words = str(error)
    if reading and "readonly" in words:
        # There is a journal, which only who may write can play back (sqlite.org/rescode.html,
        # readonly_rollback).
        return CniError(TRY_AGAIN, f"{path} was left half changed by a killed call: run concorde reconcile")
    if "locked" in words:
        return CniError(TRY_AGAIN, f"{path} is busy")
    if "full" in words:
        return CniError(IO_FAILURE, f"{path}: no space left on its file system; nothing was changed")
    if "readonly" in words and _is_readonly(os.path.dirname(path)):
        return CniError(IO_FAILURE, f"{path}: its file system is read-only")
    # SQLite says "readonly" of a file, too, that was moved away under it.
    return damaged(path, words)


def _is_readonly(directory: str) -> bool:
    try:
        return bool(os.statvfs(directory).f_flag & os.ST_RDONLY)
    except OSError:
        return False
