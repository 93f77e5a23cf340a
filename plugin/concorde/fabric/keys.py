"""The keys by which nodes of a fabric know each other's messages: one a cluster.

A cluster's agent leaves its key in its network's directory of the state, where whichever agent looks after
the node finds those of all clusters.
"""

from __future__ import annotations

import os

from .. import files, state_files
from ..cni import write
from ..configuration import invalid

# Of a key, at least and at most (bytes). A file of random bytes, or the text of a Kubernetes Secret.
_LEAST, _MOST = 16, 4096


def read(path: str) -> bytes:
    """A cluster's key, of a file. Raises CniError 7."""
    try:
        key = files.read(path, _MOST).strip()
    except (OSError, ValueError) as error:
        raise invalid("--key", f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if len(key) < _LEAST:
        raise invalid("--key", f"{path}: a key has at least {_LEAST} bytes, not {len(key)}")
    return key


def leave(directory: str, key: bytes) -> None:
    """Leave a network's cluster's key in its directory. Raises CniError 108 and OSError."""
    state_files.directory(directory)
    descriptor = state_files.opened(f"{directory}/{state_files.FABRIC_KEY}")
    try:
        if os.pread(descriptor, _MOST, 0) != key:
            os.ftruncate(descriptor, 0)
            write(descriptor, key)
    finally:
        os.close(descriptor)


def forget(directory: str) -> None:
    """Take away the key of a network's cluster, which has none any more. Raises OSError."""
    try:  # noqa: SIM105 - contextlib takes longer to load than all of this
        os.unlink(f"{directory}/{state_files.FABRIC_KEY}")
    except FileNotFoundError:
        pass


def is_left(directory: str) -> bool:
    """Whether a network's cluster has left its key."""
    return os.path.exists(f"{directory}/{state_files.FABRIC_KEY}")


def of(state: str) -> list[bytes]:
    """The keys of the clusters whose networks this node has; each once."""
    found = []
    for path in _paths(state):
        try:
            found.append(files.read(path, _MOST))
        except (OSError, ValueError):
            continue
    return list(dict.fromkeys(found))


def changed(state: str) -> tuple[int, ...]:
    """What is another when a key has come, changed or gone."""
    found = []
    for path in _paths(state):
        try:
            found.append(os.stat(path).st_ctime_ns)
        except OSError:
            continue
    return tuple(found)


def _paths(state: str) -> list[str]:
    try:
        networks = sorted(os.listdir(state))
    except FileNotFoundError:
        return []
    return [f"{state}/{network}/{state_files.FABRIC_KEY}" for network in networks]
