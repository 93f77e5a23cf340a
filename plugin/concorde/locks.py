"""Locks on an attachment and on the node, which outlive their process as long as a child of it runs.

When a runtime kills this plugin, the `ip` it started goes on and may still create a link. A DEL that ran
in between would find nothing, and leave that link behind for ever. So a lock belongs to an open file
description, which the children inherit: DEL waits for such an orphan to end, then cleans up after it.
"""

from __future__ import annotations

import fcntl
import os
import struct

from . import names, owned
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
        owned.directory(directory)
        self._offset = names.digest(container, interface) & 0x3FFFFFFFFFFFFFFF  # an off_t is signed
        self._descriptor = owned.opened(f"{directory}/{owned.ATTACHMENTS_LOCK}")
        os.set_inheritable(self._descriptor, True)

    def __enter__(self) -> None:
        _lock(self._descriptor, fcntl.F_WRLCK, self._offset)

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


class NetworkLock:
    """Exclusive right to change all attachments of a network: the whole of that file."""

    def __init__(self, directory: str) -> None:
        """Take it. Raises CniError 108."""
        owned.directory(directory)
        self._descriptor = owned.opened(f"{directory}/{owned.ATTACHMENTS_LOCK}")
        os.set_inheritable(self._descriptor, True)
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
        owned.directory(directory)
        self.directory = directory
        self._descriptor = owned.opened(f"{directory}/{owned.NODE_LOCK}")
        os.set_inheritable(self._descriptor, True)

    def __enter__(self) -> None:
        _lock(self._descriptor, fcntl.F_WRLCK, 0)

    def __exit__(self, *_: object) -> None:
        _lock(self._descriptor, fcntl.F_UNLCK, 0)
        os.close(self._descriptor)


def _lock(descriptor: int, kind: int, offset: int, length: int = 1) -> None:
    # struct flock: l_type, l_whence, l_start, l_len, l_pid; 0q pads it to the alignment of off_t.
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLKW, struct.pack("hhqqi0q", kind, os.SEEK_SET, offset, length, 0))
