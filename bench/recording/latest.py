"""``latest``: beside the recordings, a relative link to the one that was completed last.

It is a convenience, and nothing is made of it: a recording is complete without it. Whatever else has this
name, be it a link to somewhere else, is somebody else's and stays as it is.
"""

from __future__ import annotations

import re
import secrets
from contextlib import suppress
from pathlib import Path

NAME = "latest"
# What begin_directory calls a recording, and nothing with a slash.
_RUN = re.compile(r"\d{8}T\d{6}Z-[^/]+")


def point_to(directory: Path) -> None:
    """Let ``latest`` lead to a recording that is complete, if it may and can be made.

    Whoever looks sees the former one or this one; of several runs that end at once, it is that of either.
    """
    link = directory.with_name(NAME)
    new = link.with_name(f".{NAME}.{secrets.token_hex(8)}")
    with suppress(OSError):  # as where there are no links, or no space
        try:
            link.symlink_to(directory.name)  # which replaces nothing
        except FileExistsError:
            if not is_link(link):
                return
            new.symlink_to(directory.name)
            try:
                new.replace(link)
            finally:
                new.unlink(missing_ok=True)


def is_link(path: Path) -> bool:
    """Tell whether a path is our link, or what a run that was killed has left of one."""
    if path.name != NAME and not path.name.startswith(f".{NAME}."):
        return False
    try:
        return _RUN.fullmatch(str(path.readlink())) is not None
    except (OSError, ValueError):  # ValueError: a name with a null character
        return False


def followed(path: Path) -> Path:
    """Return where our link leads; every other path as it is."""
    return path.with_name(str(path.readlink())) if is_link(path) else path
