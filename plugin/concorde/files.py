"""Reading files that others named: a pipe, a device or a huge file must not hold anything up."""

from __future__ import annotations

import os
import stat


def read(path: str, longest: int) -> bytes:
    """The content of a regular file of so many bytes at most.

    Raises OSError, and ValueError with a message for people.
    """
    # Without O_NONBLOCK the kernel would wait for somebody to write into a pipe.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("is not a regular file")
        content = b""
        while part := os.read(descriptor, longest + 1 - len(content)):
            content += part
            if len(content) > longest:
                raise ValueError(f"is longer than {longest} bytes")
        return content
    finally:
        os.close(descriptor)
