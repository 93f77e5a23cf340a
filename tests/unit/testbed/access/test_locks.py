"""Locks, also where a file system has fewer than ours: what flock(2) says of NFS stands in for one."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.access import locks

FLOCK = fcntl.flock


def as_on_nfs(descriptor: int, operation: int) -> None:
    """An exclusive lock wants a file that is open for writing (flock(2), "NFS details")."""
    if operation & fcntl.LOCK_EX and fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(errno.EBADF, "Bad file descriptor")
    FLOCK(descriptor, operation)


def without_locks(_descriptor: int, _operation: int) -> None:
    raise OSError(errno.ENOLCK, "No locks available")


def test_on_nfs_it_is_a_lock_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", as_on_nfs)
    file = tmp_path / "request.json"
    file.write_text("{}")
    with (
        locks.working_on(tmp_path, file) as there_are_locks,
        pytest.raises(LookupError, match="is being worked on"),
        locks.working_on(tmp_path, file),
    ):
        pass
    assert there_are_locks
    with locks.working_on(tmp_path, file):  # and it ends
        assert file.read_text() == "{}"


def test_without_locks_it_goes_on_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", without_locks)
    (tmp_path / "request.json").write_text("{}")
    with locks.working_on(tmp_path, tmp_path / "request.json") as there_are_locks:
        assert not there_are_locks


def test_another_error_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(fcntl, "flock", fails)
    with (tmp_path / "x").open("w") as file, pytest.raises(OSError, match="Input/output"):
        locks.take(file.fileno())


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_text("")
    program = "import sys; f = open(sys.argv[1], 'r+b'); from testbed.access import locks; " \
        "locks.take(f.fileno()); print(flush=True); sys.stdin.read()"  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-c", program, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout
        holder.stdout.readline()
        with pytest.raises(LookupError, match="is being worked on"), locks.working_on(tmp_path, file):
            pass
        holder.kill()
        holder.wait()
    with locks.working_on(tmp_path, file) as there_are_locks:
        assert there_are_locks


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_what_may_not_be_written_is_named(tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    file.touch(0o444)
    with (
        pytest.raises(LookupError, match=r"request\.json: Permission denied"),
        locks.working_on(tmp_path, file),
    ):
        pass
