"""What is known of the pods that have more interfaces: a file each, written before anything begins.

So whatever a kill leaves behind is written down, and DEL needs no API, annotation or definition. Others read
them too: `networks[].result` is what a network's last plugin answered.
"""

from __future__ import annotations

import json
import os

from .. import files, state_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..requests import Attachment

    Record = dict[str, Any]

_END = ".json"
_LONGEST = 4 << 20


def path(directory: str, container: str, interface: str) -> str:
    """The file of a pod's attachment; `directory` is its network's."""
    return f"{directory}/{container}@{interface}{_END}"


def read(path: str) -> Record | None:
    """What a file says; None if there is none, or it is damaged. Raises OSError."""
    try:
        record = json.loads(files.read(path, _LONGEST))
    except (FileNotFoundError, ValueError):
        return None
    return record if isinstance(record, dict) else None


def write(directory: str, record: Record) -> None:
    """Write it, whole. Raises OSError, CniError 108."""
    state_files.directory(directory)
    files.replace(path(directory, record["container"], record["interface"]), json.dumps(record).encode())


def drop(path: str) -> None:
    """Remove a file if it is there, and what killed calls left that were writing it. Raises OSError."""
    directory, name = os.path.split(path)
    for other in _names(directory):
        if other == name or other.startswith(f".{name}."):
            os.unlink(f"{directory}/{other}")


def kept(directory: str) -> list[Attachment]:
    """The attachments of a network of which there is a file."""
    found = (name[: -len(_END)].rpartition("@")[::2] for name in _names(directory) if name.endswith(_END))
    return [(container, interface) for container, interface in found if container and container[0] != "."]


def networks(directory: str) -> list[str]:
    """The directories of all networks."""
    return [f"{directory}/{network}" for network in _names(directory)]


def of_node(directory: str) -> list[Record]:
    """All records of all networks, of which the directories are there."""
    found = []
    for network in networks(directory):
        for attachment in kept(network):
            record = read(path(network, *attachment))
            if record is not None:
                found.append(record)
    return found


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return []
