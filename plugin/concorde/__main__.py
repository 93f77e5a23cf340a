"""The plugin `concorde`: which module serves a verb."""

from __future__ import annotations

import sys

from .cni import TYPE
from .program import Program, fill_gaps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .cni import CniError
    from .requests import Request


def main() -> int:
    """Serve one call, as Program.run() says. With arguments, which no runtime gives, it is for people."""
    fill_gaps()
    if len(sys.argv) > 1:
        from . import admin

        return admin.main(sys.argv[1:])
    return Program(TYPE, _serve, _undo, _note).run()


def _serve(verb: str, request: Request) -> dict[str, Any] | None:
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


def _undo(request: Request) -> None:
    from .verbs.delete import delete

    delete(request)


def _note(request: Request, problem: CniError) -> None:
    from . import refusals

    refusals.note(request, problem)
