"""The program: read the call, do the verb, answer on standard output as the specification says."""

from __future__ import annotations

import os
import sys

from . import documents, requests
from .cni import COMMAND_FAILED, INTERNAL, IO_FAILURE, LATEST, TRY_AGAIN, VERSIONS, CniError, require_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main() -> int:
    """Serve one call; 0, or 1 after an error object. Nothing else ever appears on standard output.

    With arguments, which no runtime gives, it is a program for people.
    """
    if len(sys.argv) > 1:
        from . import program

        return program.main(sys.argv[1:])
    version = LATEST
    try:
        verb = requests.command(os.environ)
        content = requests.read_input()
        if verb == "VERSION":
            answer: dict[str, Any] | None = _versions(content)
        else:
            document = documents.decode(content)
            asked = document.get("cniVersion", "")
            require_version(verb, asked)
            version = asked
            answer = _serve(verb, requests.request(verb, os.environ, document))
        status = 0
    except Exception as error:
        _trace()
        problem = _as_cni_error(error)
        answer = {"cniVersion": version, "code": problem.code, "msg": problem.msg}
        if problem.details:
            answer["details"] = problem.details
        status = 1
    if answer is not None:
        _write(documents.encode(answer))
    return status


def _serve(verb: str, request: requests.Request) -> dict[str, Any] | None:
    # Only the verb's own modules are imported: the others would cost each call a millisecond.
    if verb == "ADD":
        from .add import add

        return add(request)
    if verb == "DEL":
        from .delete import delete as serve
    elif verb == "CHECK":
        from .check import check as serve
    elif verb == "GC":
        from .gc import gc as serve
    else:
        from .status import status as serve
    serve(request)
    return None


def _versions(content: bytes) -> dict[str, Any]:
    asked = documents.decode(content).get("cniVersion") if content.strip() else None
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
    if kind == "OperationalError" and "locked" in str(error):
        return CniError(TRY_AGAIN, f"the store is busy: {error}")
    if isinstance(error, OSError):
        return CniError(IO_FAILURE, str(error))
    return CniError(INTERNAL, f"{kind}: {error}")


def _trace() -> None:
    if os.environ.get("CONCORDE_DEBUG"):
        import traceback

        traceback.print_exc()


def _write(content: bytes) -> None:
    while content:
        content = content[os.write(1, content) :]
