"""How tables look in a terminal, and a table of texts that is shown there and in Markdown alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from bench.presentation.wording import verbatim


def borderless(title: str | Text, gap: int = 1) -> Table:
    """Return a table without lines, its title on the left, and so many blanks between columns."""
    return Table(
        title=verbatim(title) if isinstance(title, str) else title,
        title_justify="left",
        title_style="",
        box=None,
        pad_edge=False,
        padding=(0, gap, 0, 0),
    )


@dataclass(frozen=True)
class Sheet:
    """A title, headings, and rows of texts; the first two columns say what a row is about."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]

    def table(self) -> Table:
        """Return it for the terminal; what is behind a colon is said below the table, where there is room."""
        table = borderless(self.title)
        for number, heading in enumerate(self.headings):
            table.add_column(heading, justify="left" if number < 2 else "right", overflow="fold")
        for row in self.rows:
            table.add_row(*(verbatim(cell.partition(":")[0]) for cell in row))
        return table

    def markdown(self) -> str:
        """Return its title as a sentence, and it below."""
        return f"{self.title[0].upper()}{self.title[1:]}.\n\n{markdown(self.headings, self.rows)}"


def markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n" for cells in lines
    )
