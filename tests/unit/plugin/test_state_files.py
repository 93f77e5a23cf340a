"""Directories and files of the state: ours alone, or refused."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from concorde import state_files
from concorde.cni import UNUSABLE, CniError


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "below" / "state"


@pytest.mark.parametrize("umask", [0o000, 0o077, 0o777])
def test_what_is_made_is_ours_alone_whatever_the_umask(state: Path, umask: int) -> None:
    state.parent.mkdir()
    before = os.umask(umask)
    try:
        state_files.directory(f"{state}/net")
        state_files.touch(f"{state}/net/lock")
    finally:
        os.umask(before)
    assert [mode(path) for path in (state, state / "net", state / "net" / "lock")] == [0o700, 0o700, 0o600]


def test_directories_above_the_state_are_everybodys(state: Path) -> None:
    before = os.umask(0)
    try:
        state_files.directory(f"{state}/net")
    finally:
        os.umask(before)
    assert mode(state.parent) == 0o755


@pytest.mark.parametrize("mark", [*state_files.MARKS, *(f"net/{mark}" for mark in state_files.MARKS), ""])
def test_a_mode_that_is_too_wide_is_narrowed_where_it_is_empty_or_has_something_of_ours(
    state: Path, mark: str
) -> None:
    state.mkdir(parents=True)
    if mark:
        (state / mark).parent.mkdir(exist_ok=True)
        (state / mark).touch()
    state.chmod(0o755)
    state_files.directory(f"{state}/other")
    assert mode(state) == 0o700


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda state: (state / "letter").touch(), "is open to others and holds what is not this plugin's"),
        (lambda state: (state / "lock").mkdir(), "is open to others"),
        (lambda state: (state / "lock").symlink_to("/dev/null"), "is open to others"),
        (lambda state: state.chmod(0o1777), "is open to others"),
        (lambda state: (state / "lock").touch() or state.chmod(0o1777), "is open to others"),
    ],
)
def test_somebody_elses_directory_is_not_taken(
    state: Path, spoil: Callable[[Path], object], words: str
) -> None:
    state.mkdir(parents=True)
    state.chmod(0o755)
    spoil(state)
    before = mode(state)
    with pytest.raises(CniError, match=words) as caught:
        state_files.directory(f"{state}/net")
    assert (caught.value.code, mode(state), (state / "net").exists()) == (UNUSABLE, before, False)
    assert "name another stateDir" in caught.value.msg


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        here = Path.cwd()
        os.chdir(path.parent)  # a socket's name may have 107 bytes
        try:
            listening.bind(path.name)
        finally:
            os.chdir(here)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda path: path.symlink_to("/tmp"), "symbolic link"),
        (lambda path: path.touch(), "file"),
        (os.mkfifo, "special file"),
        (a_socket, "special file"),
    ],
)
def test_what_is_no_directory_is_named(state: Path, make: Callable[[Path], object], kind: str) -> None:
    state.mkdir(parents=True, mode=0o700)
    make(state / "net")
    with pytest.raises(CniError, match=f"is a {kind}, not a directory: remove it, then run concorde rebuild"):
        state_files.directory(f"{state}/net")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path.symlink_to("/dev/null"), "is a symbolic link, not a file"),
        (lambda path: path.mkdir(), "is a directory, not a file"),
        (os.mkfifo, "is a special file, not a file"),
        (
            lambda path: path.touch() or (path.parent / "second").hardlink_to(path),
            "has a second name elsewhere",
        ),
    ],
)
@pytest.mark.parametrize("suffix", ["", *state_files.BESIDE])
def test_what_is_no_file_of_ours_alone_is_named(
    tmp_path: Path, make: Callable[[Path], object], words: str, suffix: str
) -> None:
    if suffix:
        (tmp_path / "db").touch()
    make(tmp_path / f"db{suffix}")
    with pytest.raises(CniError, match=words) as caught:
        state_files.database(str(tmp_path / "db"))
    assert caught.value.code == UNUSABLE


def test_a_database_and_what_lies_beside_it_are_narrowed_or_made(tmp_path: Path) -> None:
    state_files.database(str(tmp_path / "new"))
    assert [(path.name, mode(path)) for path in tmp_path.iterdir()] == [("new", 0o600)]
    for suffix in ("", *state_files.BESIDE):
        (tmp_path / f"new{suffix}").touch()
        (tmp_path / f"new{suffix}").chmod(0o644)
    state_files.database(str(tmp_path / "new"))
    assert {mode(path) for path in tmp_path.iterdir()} == {0o600}


def test_who_owns_it_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "db").touch(mode=0o600)
    (tmp_path / "net").mkdir(mode=0o700)
    uid = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    for ask, name in ((state_files.database, "db"), (state_files.directory, "net")):
        with pytest.raises(CniError, match=f"belongs to user {uid}, not to {uid + 1}"):
            ask(str(tmp_path / name))


def test_what_is_put_aside_has_the_next_number(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / "db").touch()
        assert state_files.set_aside(str(tmp_path / "db")) == f"{tmp_path}/db.damaged-{number}"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["db.damaged-1", "db.damaged-2"]
