"""How kopf tells what changes in a cluster: the one module that needs a package from elsewhere.

Its handlers of events write nothing to objects, nor put finalizers on them. Of a list that it asks for
again, when a watch could not go on, kopf does not say what is not in it any more: so all is listed from
time to time besides.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import kopf

from edge.access import Access
from edge.http import Json
from edge.watch import Kind


def watch(
    access: Access, kinds: Iterable[Kind], put: Callable[[str, Json, bool], object], over: threading.Event
) -> None:
    """Say of each object what it is, and what changes, until it is over; not from a program's main thread."""
    logging.getLogger("kopf").setLevel(logging.ERROR)
    registry = kopf.OperatorRegistry()

    @kopf.on.startup(registry=registry)  # type: ignore[untyped-decorator, unused-ignore]
    def settle(settings: kopf.OperatorSettings, **_: Any) -> None:
        settings.posting.enabled = False
        settings.networking.error_backoffs = [0.1, 0.2, 0.5, 1, 1, 2]

    @kopf.on.login(registry=registry)  # type: ignore[untyped-decorator, unused-ignore]
    def log_in(**_: Any) -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(
            server=access.url,
            ca_path=access.authority or None,
            certificate_path=access.identity or None,
            private_key_path=access.identity or None,
            token=Path(access.token).read_text(encoding="ascii").strip() if access.token else None,
        )

    for kind in kinds:
        group, version, plural = _named(kind)
        kopf.on.event(group, version, plural, registry=registry, id=plural)(_handler(kind, put))
    # By itself kopf would ask for the name of a user, whom an image need not have.
    operator = kopf.operator(
        registry=registry, standalone=True, clusterwide=True, stop_flag=over, identity="edge-operator"
    )
    asyncio.run(operator)


def _named(kind: Kind) -> tuple[str, str, str]:
    """Return group, version and plural of a kind by its path."""
    parts = kind.path.strip("/").split("/")
    return (parts[1] if parts[0] == "apis" else "", parts[-2], parts[-1])


def _handler(kind: Kind, put: Callable[[str, Json, bool], object]) -> Any:
    async def seen(event: Any, **_: Any) -> None:
        document = event["object"]
        if not kind.labels or kind.labels in (document["metadata"].get("labels") or {}):
            put(kind.path, document, event["type"] == "DELETED")

    return seen
