"""A study of backends for the terminal."""

from __future__ import annotations

from rich.table import Table

from bench.presentation.words import verbatim
from bench.studies.backends.index import Backends
from bench.studies.backends.sheets import Sheet, sheets


def tables(found: Backends) -> list[Table]:
    """Return every table there is something for."""
    return [_table(sheet) for sheet in sheets(found)]


def _table(sheet: Sheet) -> Table:
    table = Table(
        title=verbatim(sheet.title),
        title_justify="left",
        title_style="",
        box=None,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for number, heading in enumerate(sheet.headings):
        table.add_column(heading, justify="left" if number < 2 else "right", overflow="fold")
    for row in sheet.rows:
        # Why something cannot be run is said below, where there is room.
        table.add_row(*(verbatim(cell.partition(":")[0]) for cell in row))
    return table
