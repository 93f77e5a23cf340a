"""Words from outside, as they may be shown."""

from __future__ import annotations

from rich.text import Text

from testbed.scenario.texts import escaped


def verbatim(words: str, style: str = "") -> Text:
    """Return words from outside as Rich shows them, in tables and elsewhere."""
    return Text(escaped(words), style)
