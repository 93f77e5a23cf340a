"""Which clusters to ask for testbeds that stay up there: a file for each, with its kubeconfigs' paths.

What such a testbed holds is in its clusters. A file here that leads to clusters without it is worth nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path


def directory() -> Path:
    """Return where the files are: they outlive a restart of this machine, and no cache is cleared of them."""
    given = Path(os.environ.get("XDG_STATE_HOME", ""))
    # The XDG specification says to ignore a relative path.
    base = given if given.is_absolute() else Path.home() / ".local" / "state"
    return base / "concorde-testbed" / "clusters"


def file(name: str) -> Path:
    """Return a testbed's file."""
    return directory() / f"{name}.json"


def names() -> list[str]:
    """Return of which testbeds there are files."""
    return sorted(found.stem for found in directory().glob("*.json"))


def kubeconfigs(name: str) -> dict[str, str] | None:
    """Return the paths of a testbed's kubeconfigs by cluster; None if nothing is known of it."""
    try:
        found: dict[str, str] = json.loads(file(name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return found


def remember(name: str, paths: Mapping[str, str]) -> None:
    """Write a testbed's file, all at once."""
    directory().mkdir(parents=True, exist_ok=True)
    unfinished = file(name).with_suffix(".unfinished")
    unfinished.write_text(json.dumps(dict(paths)), encoding="utf-8")
    unfinished.replace(file(name))


def forget(name: str) -> None:
    """Remove a testbed's file, if there is one."""
    file(name).unlink(missing_ok=True)
