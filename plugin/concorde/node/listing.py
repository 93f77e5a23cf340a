"""Our tables as nft lists them, whichever version of this plugin made them."""

from __future__ import annotations

import json

from .. import tools
from . import guard, limits, nfnetlink
from .tables import TABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

FAMILIES = ("ip", "ip6", "bridge", *guard.ROUTED)


class Listing:
    """The listing of all families' tables; there is time for other work meanwhile."""

    def __init__(self) -> None:
        """Start it. Raises FileNotFoundError."""
        self._running = [
            (family, tools.start("nft", "-j", "list", "table", family, TABLE))
            for family in FAMILIES
            if family not in guard.ROUTED or nfnetlink.has_table(family)
        ]

    def finish(self) -> Iterator[tuple[str, str]]:
        """Each family that has a table, and what nft prints of that. Raises CommandError."""
        for family, running in self._running:
            try:
                yield family, running.finish()
            except tools.CommandError as failure:
                if "No such file" not in failure.output:
                    raise


def objects(shown: str) -> list[dict[str, Any]]:
    """What a listing is made of: objects with one key, their kind."""
    found: list[dict[str, Any]] = json.loads(shown)["nftables"]
    return found


def set_of(entry: dict[str, Any]) -> dict[str, Any] | None:
    """The set or the map that an object of a listing is, if it is one."""
    return entry.get("map") or entry.get("set")


class Listed:
    """An element of a set or map.

    The parts of its key, a map's value, and its limit if that is in bytes.
    """

    def __init__(self, element: Any) -> None:
        self.limit = ""
        if isinstance(element, dict) and "elem" in element:
            self.limit = limits.shown(element["elem"].get("limit", {}))
            element = element["elem"]["val"]
        key, value = element if isinstance(element, list) else (element, None)
        self.key = [str(part) for part in (key["concat"] if isinstance(key, dict) else [key])]
        self.value = None if value is None else str(value)

    def text(self, parts: list[str]) -> str:
        """It as nft reads it, where these are the parts of its key as nft reads them."""
        return " . ".join(parts) + (f" : {self.value}" if self.value is not None else "") + self.limit

    @property
    def parts(self) -> list[str]:
        """Key and value."""
        return self.key if self.value is None else [*self.key, self.value]
