"""Directories and files that other programs read, and that are gone with this process, however it ends.

A file has no name. A directory has a shell that waits for the end of a pipe which this process holds, and
then removes what it has made itself. So nobody ever looks for what others have left.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REMOVE_AT_END = """
directory=$(mktemp -d -- "$1/concorde-XXXXXXXX") || exit
printf '%s' "$directory"
exec >&-
cat >/dev/null
rm -rf -- "$directory"
"""


@contextmanager
def directory() -> Iterator[Path]:
    """Make an empty directory, for this user alone. Raises RuntimeError if there can be none."""
    with subprocess.Popen(
        ["sh", "-c", REMOVE_AT_END, "sh", tempfile.gettempdir()],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
        errors="surrogateescape", start_new_session=True,  # a Ctrl-C is not for it
    ) as remover:  # fmt: skip
        assert remover.stdout is not None
        assert remover.stderr is not None
        path = remover.stdout.read()
        if not path:
            raise RuntimeError(f"no temporary directory: {remover.stderr.read().strip()}")
        yield Path(path)


@contextmanager
def file() -> Iterator[Path]:
    """Make an empty file in memory. The path leads to it, for this user and nobody else."""
    descriptor = os.memfd_create("concorde")
    try:
        os.fchmod(descriptor, 0o600)
        yield Path(f"/proc/{os.getpid()}/fd/{descriptor}")
    finally:
        os.close(descriptor)
