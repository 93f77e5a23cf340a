"""Locks on files, which end with the process that has them; also where a file system has fewer than ours."""

from __future__ import annotations

import errno
import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# What flock(2) answers where a file system has none: NFS without its lock daemon, some FUSE, some clusters'.
_NONE_THERE = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
WITHOUT = "the file system has no locks: let nobody else work on it meanwhile"


def take(descriptor: int, wait: bool = True) -> bool:
    """Lock a file that is open for writing until it is closed; tell whether its file system has locks at all.

    On NFS an exclusive flock is a lock on bytes, for which it must be open for writing (flock(2)). Raises
    BlockingIOError, unless ``wait``, if another process has it.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if error.errno not in _NONE_THERE:
            raise
        return False
    return True


@contextmanager
def working_on(directory: Path, file: Path) -> Iterator[bool]:
    """Keep others from working on a directory, by the lock on a file of it; yields what ``take`` returns.

    Raises LookupError if somebody is working on it, and if the file may not be written.
    """
    try:
        stream = file.open("r+b")
    except PermissionError as error:
        raise LookupError(f"--resume: {file}: {error.strerror}") from None
    with stream:
        try:
            there_are_locks = take(stream.fileno(), wait=False)
        except BlockingIOError:
            raise LookupError(f"--resume: {directory} is being worked on") from None
        yield there_are_locks
