"""Directories for files that other programs read, and that are gone with this process, however it ends.

A directory has a keeper: a shell that waits for the end of a pipe which this process holds, and then removes
what it has made itself. So nobody ever looks for what others have left.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

KEEPER = """
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
        ["sh", "-c", KEEPER, "sh", tempfile.gettempdir()],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
        errors="surrogateescape", start_new_session=True,  # a Ctrl-C is not for it
    ) as keeper:  # fmt: skip
        assert keeper.stdout is not None
        assert keeper.stderr is not None
        path = keeper.stdout.read()
        if not path:
            raise RuntimeError(f"no temporary directory: {keeper.stderr.read().strip()}")
        yield Path(path)
