"""What pods were refused, so that somebody tells it where they are: ADD notes it, the node's agent takes it.

Only where an agent has made the file, for somebody must empty it. Who cannot write it down goes on: the
runtime has the answer all the same.
"""

from __future__ import annotations

import fcntl
import os
import stat

from . import requests, state_files, strict_json
from .cni import TRY_AGAIN, CniError
from .configuration import Identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .requests import Request

    Note = dict[str, Any]

_MOST = 1 << 16  # bytes in all: of a pod that is tried again and again, some hundred notes
_LONGEST = 1000  # characters of a message; an event has room for 1,024 bytes


def path(directory: str) -> str:
    """Where the notes of a network's directory lie."""
    return f"{directory}/{state_files.REFUSALS}"


def note(request: Request, problem: CniError) -> None:
    """Write down that an ADD was refused, if that is known to be of a pod, and an agent wants it."""
    namespace, slash, pod = request.pod.partition("/")
    if not slash or problem.code == TRY_AGAIN:
        return
    uid = requests.argument(os.environ.get("CNI_ARGS", ""), "K8S_POD_UID")
    said = {"namespace": namespace, "pod": pod, "uid": uid, "code": problem.code}
    line = strict_json.encode({**said, "message": problem.msg[:_LONGEST]})
    try:  # noqa: SIM105 - importing contextlib costs a millisecond
        _append(path(Identity(request.document).directory), line)
    except (OSError, CniError):
        pass


def _append(file: str, line: bytes) -> None:
    flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(file, flags)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        found = os.fstat(descriptor)
        if stat.S_ISREG(found.st_mode) and found.st_size + len(line) <= _MOST:
            os.write(descriptor, line)
    finally:
        os.close(descriptor)


def take(directory: str) -> list[Note]:
    """All notes, which are gone then; the file is made if it is missing. Raises CniError 108 and OSError."""
    state_files.directory(directory)
    descriptor = state_files.opened(path(directory))
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        content = os.pread(descriptor, _MOST, 0)
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)
    found = []
    for line in content.splitlines():
        try:
            found.append(strict_json.decode(line))
        except CniError:
            continue  # half of one, of a killed call
    return found


def are_there(directory: str) -> bool:
    """Whether take() has anything to do."""
    try:
        return os.stat(path(directory)).st_size > 0
    except FileNotFoundError:
        return True
