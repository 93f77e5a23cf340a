"""Which endpoints a cluster's API knows of its services, as its own controller found them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from edge.services.catalogue import Name
from edge.services.endpoints import Endpoint, ready_ones, slice_of
from edge.services.publication import known

AGAIN_SECONDS = 0.2


def ready(slices: Iterable[dict[str, Any]], service: Name, hinted: bool = False) -> list[Endpoint]:
    """Return a service's ready endpoints, with hints of slices' field, or those of the annotation."""
    own = [(each, one) for one in slices if (each := known(one)) and each.of == service]
    return list(ready_ones(each.hinted if hinted else slice_of(one) for each, one in own))


def lacking(name: str, wanted: Iterable[str], there: Iterable[Endpoint]) -> Iterator[str]:
    """Yield, in words, which addresses are no endpoints of a service."""
    for address in sorted(set(wanted) - {one.address for one in there}):
        yield f"{name} lacks endpoint {address}"


def after(seconds: float, lacks: Callable[[], Iterable[str]]) -> list[str]:
    """Return what lacks still after some time, asked again and again; nothing as soon as nothing does."""
    deadline = time.monotonic() + seconds
    while (words := list(lacks())) and time.monotonic() < deadline:
        time.sleep(AGAIN_SECONDS)
    return words
