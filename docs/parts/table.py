"""Markdown's tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as Markdown; bars and line ends in its cells are no ends of them."""
    return "".join(map(_line, [headings, ["---"] * len(headings), *rows]))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|').replace(chr(10), ' ') for cell in cells)} |\n"
