"""What a network's configuration list may leave open, as a table."""

from __future__ import annotations

from docs.parts.table import table
from testbed.scenario import descriptions


def render() -> str:
    """Return the table as Markdown."""
    rows = ([f"`${{{name}}}`", words] for name, words in descriptions.PLACEHOLDERS.items())
    return table(["Placeholder", "Stands for"], rows)
