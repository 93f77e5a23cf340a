"""Which Kubernetes an API is of, and where it has slices: asked of the API itself."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Optional

from edge.http import AwayError, Question, Server
from edge.services.annotations import Version
from edge.services.catalogue import SLICES
from edge.watch import FIRST_WAIT, LAST_WAIT

VERSION, GROUP = "/version", "/apis/discovery.k8s.io"
NO_SLICES = "discovery.k8s.io: neither v1 nor v1beta1: EndpointSlices are wanted, of Kubernetes 1.17"


class Found(NamedTuple):
    """Which Kubernetes an API is of, and the path of its slices."""

    version: Version
    slices: str


def discover(server: Server, log: Callable[[str], None]) -> Optional[Found]:  # noqa: UP045 (Python 3.9)
    """Return what an API says of itself, once it does; nothing once nothing is asked any more.

    ``log`` is told what is in the way, again and again.
    """
    wait = FIRST_WAIT
    while not server.closed:
        try:
            return found(*(server.ask(Question("GET", path)) for path in (VERSION, GROUP)))
        except (AwayError, KeyError, TypeError) as error:
            log(f"which Kubernetes it is cannot be asked yet: {error}")
        except LookupError as error:
            log(str(error))
        time.sleep(wait)
        wait = min(2 * wait, LAST_WAIT)
    return None


def found(version: Any, group: Any) -> Found:
    """Read what an API answers at VERSION and GROUP. Raises LookupError, KeyError and TypeError."""
    numbers = [re.match(r"\d+", str(version.get(part, ""))) for part in ("major", "minor")]
    major, minor = (int(one[0]) if one else 0 for one in numbers)
    served = {one["groupVersion"] for one in group["versions"]}
    for path in SLICES:
        if path.removeprefix("/apis/").rpartition("/")[0] in served:
            return Found((major, minor), path)
    raise LookupError(NO_SLICES)
