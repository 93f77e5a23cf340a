"""Locks on an attachment and on the node, which outlive their process as long as a child of it runs.

When a runtime kills this plugin, the `ip` it started goes on and may still create a link. A DEL that ran
in between would find nothing, and leave that link behind for ever. So a lock belongs to an open file
description, which the children inherit: DEL waits for such an orphan to end, then cleans up after it.
"""

from __future__ import annotations

import fcntl
import os
import struct

from . import names, state_files
from .cni import UNUSABLE, CniError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")


class AttachmentLock:
    """Exclusive right to change one attachment of a network: `with AttachmentLock(...):`.

    One file per network; an attachment's lock is one byte of it, at the offset its names hash to. Two
    attachments at one offset would only wait for each other. Source: fcntl(2), open file description
    locks (Linux 3.15).
    """

    def __init__(self, directory: str, container: str, interface: str) -> None:
        """Raises CniError 108."""
        self._offset = names.digest(container, interface) & 0x3FFFFFFFFFFFFFFF  # an off_t is signed
        self._descriptor = _opened(directory, state_files.ATTACHMENTS_LOCK)

    def __enter__(self) -> None:
        _lock(self._descriptor, fcntl.F_WRLCK, self._offset)

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


class NetworkLock:
    """Exclusive right to change all attachments of a network: the whole of that file."""

    def __init__(self, directory: str) -> None:
        """Take it. Raises CniError 108."""
        self._descriptor = _opened(directory, state_files.ATTACHMENTS_LOCK)
        _lock(self._descriptor, fcntl.F_WRLCK, 0, length=0)  # 0 is all there may ever be

    def release(self) -> None:
        """Give it back."""
        os.close(self._descriptor)


class NoLock:
    """What stands for a lock where there can be none, because its file is not ours."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


def where_ours(opened: Callable[[], T]) -> T | NoLock:
    """The lock that `opened` gives, or none where its file is not ours."""
    try:
        return opened()
    except CniError as error:
        if error.code != UNUSABLE:
            raise
        return NoLock()


class NodeLock:
    """Exclusive right to change what all networks of the node share: `with lock:`.

    Made, it is only opened: tools started from then on inherit it, and hold it too once it is taken. Left, it
    is free at once, whoever still inherits it.
    """

    def __init__(self, directory: str) -> None:
        """Raises CniError 108."""
        self.directory = directory
        self._descriptor = _opened(directory, state_files.NODE_LOCK)

    def __enter__(self) -> None:
        _lock(self._descriptor, fcntl.F_WRLCK, 0)

    def __exit__(self, *_: object) -> None:
        _lock(self._descriptor, fcntl.F_UNLCK, 0)
        os.close(self._descriptor)


class AgentLock:
    """What the one agent of a node has; it ends with its process, and with those that inherit it.

    The file has the newest version that asked since the lock was taken. Its holder is to give way to a newer
    one, which knows more of what the kernel is to have.
    """

    def __init__(self, directory: str, version: str) -> None:
        """Open it. Raises CniError 108."""
        state_files.directory(directory)
        self._path = f"{directory}/{state_files.AGENT_LOCK}"
        self._version = version
        self.descriptor = state_files.opened(self._path)

    def take(self) -> bool:
        """Take it, or say at once that another has it."""
        try:
            _lock(self.descriptor, fcntl.F_WRLCK, 0, waits=False)
        except (BlockingIOError, PermissionError):  # fcntl(2): either, by the kernel
            if _numbers(self._version) > _numbers(self._asked()):
                self._write()
            return False
        self._write()
        return self.is_there()

    def is_wanted(self) -> bool:
        """Whether a newer version asks for it."""
        return _numbers(self._asked()) > _numbers(self._version)

    def is_there(self) -> bool:
        """Whether it is the lock still, and nobody has removed its file."""
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(self.descriptor))
        except FileNotFoundError:
            return False

    def close(self) -> None:
        """Give it back."""
        os.close(self.descriptor)

    def _asked(self) -> str:
        return os.pread(self.descriptor, 64, 0).decode(errors="replace")

    def _write(self) -> None:
        os.ftruncate(self.descriptor, 0)
        os.pwrite(self.descriptor, self._version.encode(), 0)


class Presence:
    """What a process of the node has while it does something that others ask for; it ends with it."""

    def __init__(self, directory: str, name: str) -> None:
        """Take it, whether or not another has it. Raises CniError 108."""
        state_files.directory(directory)
        self._descriptor = state_files.opened(f"{directory}/{name}")
        try:  # noqa: SIM105 - importing contextlib costs a millisecond
            _lock(self._descriptor, fcntl.F_WRLCK, 0, waits=False)
        except (BlockingIOError, PermissionError):
            pass

    def close(self) -> None:
        """Give it back."""
        os.close(self._descriptor)


def is_present(directory: str, name: str) -> bool:
    """Whether a process has it."""
    try:
        descriptor = os.open(f"{directory}/{name}", os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        _lock(descriptor, fcntl.F_WRLCK, 0, waits=False)
    except (BlockingIOError, PermissionError):
        return True
    finally:
        os.close(descriptor)
    return False


def _numbers(version: str) -> list[int]:
    return [int(part) if part.isdecimal() else 0 for part in version.split(".")]


def _opened(directory: str, name: str) -> int:
    """A file of a directory of ours, which children inherit. Raises CniError 108."""
    state_files.directory(directory)
    descriptor = state_files.opened(f"{directory}/{name}")
    os.set_inheritable(descriptor, True)
    return descriptor


def _lock(descriptor: int, kind: int, offset: int, length: int = 1, waits: bool = True) -> None:
    # struct flock: l_type, l_whence, l_start, l_len, l_pid; 0q pads it to the alignment of off_t.
    asked = struct.pack("hhqqi0q", kind, os.SEEK_SET, offset, length, 0)
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLKW if waits else fcntl.F_OFD_SETLK, asked)
