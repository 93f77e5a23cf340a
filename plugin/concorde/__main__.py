"""The program: read the call, do the verb, answer on standard output as the specification says."""

from __future__ import annotations

import os
import sys

from . import requests, strict_json
from .cni import (
    COMMAND_FAILED,
    INTERNAL,
    IO_FAILURE,
    LATEST,
    UNDECODABLE,
    VERSIONS,
    CniError,
    in_words,
    require_version,
    write,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main() -> int:
    """Serve one call; 0, or 1 after an error object. Nothing else ever appears on standard output.

    With arguments, which no runtime gives, it is a program for people.
    """
    _fill_gaps()
    if len(sys.argv) > 1:
        from . import admin

        return admin.main(sys.argv[1:])
    version, verb, request = LATEST, "", None
    try:
        verb = requests.command(os.environ)
        content = requests.read_input()
        if verb == "VERSION":
            answer: dict[str, Any] | None = _versions(content)
        else:
            document = strict_json.decode(content)
            asked = document.get("cniVersion", "")
            require_version(verb, asked)
            version = asked
            request = requests.request(verb, os.environ, document)
            answer = _serve(verb, request)
        status = 0
    except Exception as error:
        problem = _as_cni_error(error)
        answer = {"cniVersion": version, "code": problem.code, "msg": problem.msg}
        details = "\n".join(filter(None, (problem.details, _trace())))
        if details:
            answer["details"] = details
        status = 1
        if verb == "ADD" and request is not None:
            from . import refusals

            refusals.note(request, problem)
    if answer is None:
        return status
    try:
        write(1, strict_json.encode(answer))
    except OSError as error:
        return _unheard(error, request if status == 0 and verb == "ADD" else None)
    return status


def _fill_gaps() -> None:
    """See to it that nothing that is opened later takes the place of a closed standard input or output."""
    for descriptor, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(
                "/dev/null", mode
            )  # the lowest number that is free; of 0 and 1 every use fails, as before


def _unheard(error: OSError, added: requests.Request | None) -> int:
    """Nobody heard the answer: give back what an ADD took, since the runtime knows nothing of it."""
    words = f"concorde: standard output: {error.strerror}"
    if added is not None:
        from .verbs.delete import delete

        try:
            delete(added)
        except Exception as failure:
            words += f"; undoing ADD failed: {_as_cni_error(failure).msg}"
    try:  # noqa: SIM105 - importing contextlib costs a millisecond
        write(2, f"{words}\n".encode(errors="replace"))
    except OSError:
        pass
    return 1


def _serve(verb: str, request: requests.Request) -> dict[str, Any] | None:
    # Only the verb's own modules are imported: the others would cost each call a millisecond.
    if verb == "ADD":
        from .verbs.add import add

        return add(request)
    if verb == "DEL":
        from .verbs.delete import delete as serve
    elif verb == "CHECK":
        from .verbs.check import check as serve
    elif verb == "GC":
        from .verbs.gc import gc as serve
    else:
        from .verbs.status import status as serve
    serve(request)
    return None


def _versions(content: bytes) -> dict[str, Any]:
    asked = strict_json.decode(content).get("cniVersion") if content.strip() else None
    return {
        "cniVersion": asked if isinstance(asked, str) else LATEST,
        "supportedVersions": list(VERSIONS),
    }


def _as_cni_error(error: Exception) -> CniError:
    if isinstance(error, CniError):
        return error
    # By name, because a call that failed early has not imported the modules these classes live in.
    kind = type(error).__name__
    if kind == "CommandError":
        return CniError(COMMAND_FAILED, str(error), getattr(error, "output", ""))
    if isinstance(error, OSError):
        return CniError(IO_FAILURE, in_words(error))
    if isinstance(error, RecursionError):
        return CniError(UNDECODABLE, "standard input is nested too deeply")
    return CniError(INTERNAL, f"a bug of this plugin: {error}; with CONCORDE_DEBUG=1 it says where")


def _trace() -> str:
    """Where the present error came from, if somebody wants to know.

    It is a part of the answer, for what a plugin that fails says on standard error libcni drops (pkg/invoke,
    pluginErr). A pod's events show it, and the runtime's log.
    """
    if not os.environ.get("CONCORDE_DEBUG"):
        return ""
    import traceback

    return traceback.format_exc()
