"""The plugin `concorde-networks`: which function serves a verb."""

from __future__ import annotations

import os
import sys

from .. import pod_annotations, results
from ..configuration import table
from ..program import Program, fill_gaps
from .selection import NETWORKS
from .settings import TYPE
from .translation import FORWARD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..cni import CniError
    from ..requests import Request

RENEW = "RENEW"  # no verb of CNI's: lists that pods name have changed


def main() -> int:
    """Serve one call, as Program.run() says."""
    fill_gaps()
    if os.environ.get("CNI_COMMAND") == RENEW:
        return _renew()
    return Program(TYPE, _serve, _undo, _note).run()


def _serve(verb: str, request: Request) -> dict[str, Any] | None:
    given = pod_annotations.of(request.document)
    previous = table(request.document, "prevResult")
    asks = NETWORKS in given or FORWARD in given or pod_annotations.promises(given)
    if verb == "ADD" and previous is not None and not asks:
        return results.of_previous(request.version, previous)  # nothing else is imported or opened
    from . import verbs

    if verb == "ADD":
        return verbs.add(request)
    serve = {"DEL": verbs.delete, "CHECK": verbs.check, "GC": verbs.gc, "STATUS": verbs.status}[verb]
    serve(request)
    return None


def _renew() -> int:
    from . import settings, verbs

    errors = verbs.renew(os.environ.get("CONCORDE_NETWORKS", settings.DEFAULT_STATE))
    sys.stderr.write("".join(f"{error}\n" for error in errors))
    return 1 if errors else 0


def _undo(request: Request) -> None:
    from . import verbs

    verbs.delete(request)


def _note(request: Request, problem: CniError) -> None:
    """For the agent of the network, which looks where the first interface's plugin keeps its state."""
    from .. import refusals, requests

    named = {"name": request.document.get("name")}
    call = requests.Request(named, request.container, request.interface, request.netns, request.pod)
    refusals.note(call, problem)
