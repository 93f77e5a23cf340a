"""A lock per attachment, which outlives the process that took it as long as a child of it runs.

When a runtime kills this plugin, the `ip` it started goes on and may still create a link. A DEL that ran
in between would find nothing, and leave that link behind for ever. So the lock belongs to an open file
description, which the children inherit: DEL waits for such an orphan to end, then cleans up after it.
"""

from __future__ import annotations

import fcntl
import os
import struct

from . import names


class AttachmentLock:
    """Exclusive right to change one attachment of a network: `with AttachmentLock(...):`.

    One file per network; an attachment's lock is one byte of it, at the offset its names hash to. Two
    attachments at one offset would only wait for each other. Source: fcntl(2), open file description
    locks (Linux 3.15).
    """

    def __init__(self, directory: str, container: str, interface: str) -> None:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        self._path = f"{directory}/lock"
        self._offset = names.digest(container, interface) & 0x3FFFFFFFFFFFFFFF  # an off_t is signed
        self._descriptor = -1

    def __enter__(self) -> None:
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        os.set_inheritable(self._descriptor, True)
        # struct flock: l_type, l_whence, l_start, l_len, l_pid; 0q pads it to the alignment of off_t.
        flock = struct.pack("hhqqi0q", fcntl.F_WRLCK, os.SEEK_SET, self._offset, 1, 0)
        fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLKW, flock)

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)
