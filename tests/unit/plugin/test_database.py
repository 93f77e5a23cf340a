"""What the ledger is when it is opened: whole, ours, and of this version or an older one."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from concorde import state_files
from concorde.cni import DAMAGED, TRY_AGAIN, UNUSABLE, CniError
from concorde.database import Database, _Connection
from concorde.node.ledger import Ledger
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.plugin.node.test_leases import attach

if TYPE_CHECKING:
    from collections.abc import Sequence

    from concorde.database import Step

FIRST = ("CREATE TABLE thing (name TEXT)", "INSERT INTO thing VALUES ('old')")
SECOND = ("ALTER TABLE thing ADD COLUMN size INTEGER NOT NULL DEFAULT 7",)


class Things(Database):
    """A file of things, made by some steps."""

    def __init__(self, path: str, steps: tuple[Step, ...], reading: bool = False) -> None:
        self._given = steps
        super().__init__(path, len(steps), reading)

    def _steps(self) -> tuple[Step, ...]:
        return self._given


def rows(database: Database) -> list[tuple[object, ...]]:
    return list(database._database.execute("SELECT * FROM thing"))


def test_an_older_file_takes_the_steps_it_lacks(tmp_path: Path) -> None:
    path = str(tmp_path / "net/file.sqlite")
    Things(path, (FIRST,)).close()
    assert rows(Things(path, (FIRST, SECOND))) == [("old", 7)]
    assert rows(Things(path, (FIRST, SECOND))) == [("old", 7)]


def test_steps_are_taken_all_or_none(tmp_path: Path) -> None:
    path = str(tmp_path / "net/file.sqlite")
    with pytest.raises(CniError):
        Things(path, (FIRST, ("ALTER TABLE nothing ADD COLUMN x",)))
    assert rows(Things(path, (FIRST,))) == [("old",)]


def test_a_newer_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "net/file.sqlite"
    Things(str(path), (FIRST, SECOND)).close()
    before = path.read_bytes()
    with pytest.raises(CniError, match="newer version") as caught:
        Things(str(path), (FIRST,))
    assert caught.value.code == UNUSABLE
    assert path.read_bytes() == before


def test_a_file_is_looked_at_when_somebody_else_has_written_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "net/file.sqlite"
    looks = []
    execute = _Connection.execute

    def noting(self: _Connection, statement: str, values: Sequence[object] = ()) -> object:
        looks.extend([statement] if "integrity_check" in statement else [])
        return execute(self, statement, values)

    monkeypatch.setattr(_Connection, "execute", noting)

    def looked() -> bool:
        """Whether who opens it, and writes, looks; and leaves it as right."""
        looks.clear()
        things = Things(str(path), (FIRST,))
        with things:
            things._database.execute("INSERT INTO thing VALUES ('one more')")
        things.close()
        return bool(looks)

    assert [looked(), looked()] == [True, False]
    path.touch()
    assert [looked(), looked()] == [True, False]
    open_already = Things(str(path), (FIRST,))
    path.touch()
    with open_already:
        open_already._database.execute("INSERT INTO thing VALUES ('beside it')")
    assert [looked(), looked()] == [True, False]
    with open_already:  # another call has written meanwhile, and left it right
        open_already._database.execute("INSERT INTO thing VALUES ('after it')")
    assert not looked()
    open_already._database.execute("BEGIN")
    open_already._database.execute("INSERT INTO thing VALUES ('killed')")
    open_already._database.execute("COMMIT")
    assert looked()


@given(at=st.integers(0, 10**6), bit=st.integers(0, 7), more=st.integers(0, 20))
def test_no_damage_is_python_s_to_tell(
    tmp_path_factory: pytest.TempPathFactory, at: int, bit: int, more: int
) -> None:
    directory = tmp_path_factory.mktemp("store")
    book = Ledger(str(directory))
    for name in "abc":
        attach(book, name)
    book.close()
    content = bytearray((directory / "ledger.sqlite").read_bytes())
    for step in range(more + 1):
        content[(at + 997 * step) % len(content)] ^= 1 << bit
    (directory / "ledger.sqlite").write_bytes(content)
    told = None
    try:
        opened = Ledger(str(directory))
        opened.leases()
        opened.last_given()
        opened.close()
    except CniError as error:
        told = error
    assert told is None or (told.code in (DAMAGED, UNUSABLE) and "Error" not in told.msg)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_what_is_made_is_ours_alone(tmp_path: Path, umask: int) -> None:
    former = os.umask(umask)
    try:
        Ledger(str(tmp_path / "state/net")).close()
    finally:
        os.umask(former)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "state").rglob("*")}
    assert modes == {"net": 0o700, "ledger.sqlite": 0o600}
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700


def test_the_directory_of_others_is_not_taken(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(CniError, match="name another stateDir") as caught:
        Ledger(str(tmp_path / "net"))
    assert caught.value.code == UNUSABLE
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("lock", True),
        ("leases.sqlite", True),
        ("leases.sqlite-journal", True),
        ("ledger.sqlite.new", True),
        ("leases.sqlite.damaged-12", True),
        ("leases.sqlite-journal.damaged-1", True),
        (".fabric.json.17", True),
        (".fabric.json.", False),
        ("leases.sqlite.damaged-", False),
        ("leases.sqlite.bak", False),
        ("lock2", False),
        ("thesis.tex", False),
    ],
)
def test_our_files_are_known_by_their_names(name: str, ours: bool) -> None:
    assert state_files.is_ours(name) == ours


@pytest.mark.parametrize("code", [DAMAGED, UNUSABLE])
def test_what_gives_back_does_without_a_file_it_cannot_trust(code: int) -> None:
    def refuse() -> Database:
        raise CniError(code, "no")

    with state_files.WhereWhole():
        refuse()


def test_it_does_not_do_without_one_that_is_busy() -> None:
    with pytest.raises(CniError), state_files.WhereWhole():
        raise CniError(TRY_AGAIN, "busy")


def test_reading_leaves_the_file_of_the_version_before_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "net/file.sqlite"
    Things(str(path), (FIRST,)).close()
    before = path.read_bytes()
    assert rows(Things(str(path), (FIRST, SECOND), reading=True)) == [("old", 7)]
    assert path.read_bytes() == before


def test_reading_tells_of_a_change_that_a_killed_call_left_half_done(tmp_path: Path) -> None:
    path = str(tmp_path / "net/file.sqlite")
    Things(path, (FIRST,)).close()
    # A cache of one page has it write before it commits.
    code = (
        "import os, sqlite3, sys; database = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "database.execute('PRAGMA cache_size = 1'); database.execute('BEGIN IMMEDIATE');"
        "database.executemany('INSERT INTO thing VALUES (?)', [('x' * 999,)] * 999);"
        "os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code, path], check=False).returncode == -9
    with pytest.raises(CniError, match="run concorde reconcile") as caught:
        Things(path, (FIRST,), reading=True)
    assert caught.value.code == TRY_AGAIN
    assert rows(Things(path, (FIRST,))) == [("old",)]
    assert rows(Things(path, (FIRST,), reading=True)) == [("old",)]
