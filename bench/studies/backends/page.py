"""The study's tables as Markdown, and the page of the docs that shows those of the study that is kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.studies.backends.index import INDEX, Backends, read
from bench.studies.backends.sheets import Sheet, sheets
from testbed.resources import HOME
from testbed.scenario.texts import is_file

FILE = HOME / "docs" / "explanation" / "backends-measured.md"
BEGIN = "<!-- The tables of reports/reference/backends, by ./invokew figures --all -->\n"
END = "<!-- The end of these tables -->\n"


def tables(found: Backends) -> str:
    """Return all tables."""
    return "\n".join(_table(sheet) for sheet in sheets(found))


def render(reference: Path) -> str | None:
    """Return the docs page with the tables of the study that is kept, if one is, and as it is otherwise.

    None if there is no such page.
    """
    if not is_file(FILE):
        return None
    text, kept = FILE.read_text(encoding="utf-8"), reference / "backends"
    return filled(text, tables(read(kept))) if is_file(kept / INDEX) else text


def filled(page: str, content: str) -> str:
    """Return a page with the content between its marks. Raises ValueError for a page without them."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"no {BEGIN.strip()!r} and {END.strip()!r} in {FILE.name}")
    return f"{before}{begin}\n{content}\n{end}{after}"


def _table(sheet: Sheet) -> str:
    lines = [sheet.headings, ["---"] * len(sheet.headings), *sheet.rows]
    return f"{sheet.title[0].upper()}{sheet.title[1:]}.\n\n" + "".join(map(_line, lines))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"
