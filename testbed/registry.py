"""Parts of one kind, by their names: how one becomes known, and what is said of a name that none has.

A file from outside makes its own known in the same way: docs/howto/extend.md.
"""

from __future__ import annotations

from typing import TypeVar

Part = TypeVar("Part")


class Registry(dict[str, Part]):
    """The parts of one kind, in the order in which they were registered."""

    def __init__(self, kind: str, plural: str | None = None) -> None:
        """``kind`` is what people call one, as in "no study 'x' (studies: matrix, places)"."""
        super().__init__()
        self.kind = kind
        self.plural = plural or f"{kind}s"

    def register(self, name: str, part: Part) -> None:
        """Make a part known. Raises ValueError for a name that is taken: nobody's part is replaced."""
        if name in self:
            raise ValueError(f"there is {_a(self.kind)} {name!r} already")
        self[name] = part

    def named(self, name: str) -> Part:
        """Return a part. Raises LookupError with those there are."""
        if name not in self:
            raise LookupError(self.unknown(name))
        return self[name]

    def unknown(self, name: str) -> str:
        """Say that there is no such part, and which there are."""
        return f"no {self.kind} {name!r} ({self.plural}: {', '.join(self)})"


def _a(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
