"""What exit statuses mean, as a table."""

from __future__ import annotations

from bench.console import statuses
from docs.parts.table import table


def render() -> str:
    """Return the table as Markdown."""
    return table(["Status", "Means"], ([status, words] for status, words in statuses.MEANINGS.items()))
