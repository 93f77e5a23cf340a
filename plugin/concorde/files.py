"""Files that others named: none that is read may hold anything up, and none is ever half written."""

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


def replace(path: str, content: bytes) -> None:
    """Write a file that everybody may read; whoever reads has the old content or the new. Raises OSError."""
    directory, name = os.path.split(path)
    new = f"{directory}/.{name}.{os.getpid()}"
    try:
        if os.path.lexists(new):  # a killed one's, of the same number
            os.unlink(new)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            os.fchmod(descriptor, 0o644)  # the umask may have taken from it
            while content:
                content = content[os.write(descriptor, content) :]
        finally:
            os.close(descriptor)
        os.rename(new, path)
    except OSError as error:
        if os.path.lexists(new):
            os.unlink(new)
        raise OSError(error.errno, error.strerror, path) from None
