"""Names that a scenario may say because a part of that name is known.

A part makes its name known when it is imported or registered; the model checks against these alone, so it
imports no part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from testbed.scenario.faults import meant


class Names:
    """The names of one sort of parts, in the order in which they became known."""

    def __init__(self, sort: str) -> None:
        self._sort = sort
        self._names: list[str] = []

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def add(self, name: str) -> None:
        """Make a name known. Raises ValueError if it is already."""
        if name in self._names:
            raise ValueError(f"there is {self._sort} {name!r} already")
        self._names.append(name)

    def check(self, name: object) -> str:
        """Return a name that is known. Raises ValueError with those that are."""
        if not isinstance(name, str) or name not in self._names:
            *others, last = map(repr, self._names)
            known = f"{', '.join(others)} or {last}" if others else last
            question = meant(name, self._names) if isinstance(name, str) else ""
            raise ValueError(f"input should be {known}{question}")
        return name

    def describe(self, schema: dict[str, Any]) -> None:
        """Say in a field's JSON Schema which names there are."""
        schema["enum"] = list(self)


ENFORCEMENTS = Names("an enforcement")
NETWORKS = Names("a pod network")
