"""A call of a plugin: read it, let it be served, and answer as the specification says."""

from __future__ import annotations

import os

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
    warn,
    write,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .requests import Request

    Serve = Callable[[str, Request], dict[str, Any] | None]


class Program:
    """One plugin: its name, and what serves a verb, undoes an ADD, and hears of one that was refused."""

    def __init__(
        self,
        name: str,
        serve: Serve,
        undo: Callable[[Request], None],
        refused: Callable[[Request, CniError], None] = lambda request, problem: None,
    ) -> None:
        self.name = name
        self.serve = serve
        self.undo = undo
        self.refused = refused

    def run(self) -> int:
        """Serve one call; 0, or 1 after an error object. Nothing else ever appears on standard output."""
        call, status = _Call(self), 0
        try:
            answer = call.serve()
        except Exception as error:
            answer, status = call.refusal(error), 1
        if answer is None:
            return status
        try:
            write(1, strict_json.encode(answer))
        except OSError as error:
            return self._unheard(error, call.request if status == 0 and call.verb == "ADD" else None)
        return status

    def _unheard(self, error: OSError, added: Request | None) -> int:
        """Nobody heard the answer: give back what an ADD took, since the runtime knows nothing of it."""
        text = f"{self.name}: standard output: {error.strerror}"
        if added is not None:
            try:
                self.undo(added)
            except Exception as failure:
                text += f"; undoing ADD failed: {_as_cni_error(failure).msg}"
        warn(text)
        return 1


class _Call:
    """A runtime's call, and what of it is known so far."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.version, self.verb = LATEST, ""
        self.request: Request | None = None

    def serve(self) -> dict[str, Any] | None:
        """Do the verb, and return the answer if it has one. Raises CniError, and whatever went wrong."""
        self.verb = requests.command(os.environ)
        content = requests.read_input()
        if self.verb == "VERSION":
            return _versions(content)
        document = strict_json.decode(content)
        asked = document.get("cniVersion", "")
        require_version(self.verb, asked)
        self.version = asked
        self.request = requests.request(self.verb, os.environ, document)
        return self._program.serve(self.verb, self.request)

    def refusal(self, error: Exception) -> dict[str, Any]:
        """The error object for the error that is being handled."""
        problem = _as_cni_error(error)
        answer = {"cniVersion": self.version, "code": problem.code, "msg": problem.msg}
        details = "\n".join(filter(None, (problem.details, _trace())))
        if details:
            answer["details"] = details
        if self.verb == "ADD" and self.request is not None:
            self._program.refused(self.request, problem)
        return answer


def fill_gaps() -> None:
    """See to it that nothing that is opened later takes the place of a closed standard input or output."""
    for descriptor, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest number that is free; of 0 and 1 every use fails, as before.
            os.open("/dev/null", mode)


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
