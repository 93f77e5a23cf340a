"""Data of any depth as HTML: what is nested folds away, and text of many lines is shown as it is.

Not a template: what is recorded of a run's surroundings has values by the ten thousand, and a macro that calls
itself for each takes longer than all the rest of a report.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from markupsafe import Markup, escape

MOST_BESIDE = 3  # values of a list that stand beside each other; more stand below each other
NOTHING = "–"


def html(value: Any) -> Markup:
    """Return data as JSON and YAML have it, or of a record."""
    return Markup("".join(_parts(value)))


def _parts(value: Any) -> Iterator[str]:
    if not _is_nested(value):
        yield _plain(value)
    elif isinstance(value, dict):
        yield from _table(value)
    elif _is_nested(value[0]):
        yield "<ol>"
        for inner in value:
            yield "<li>"
            yield from _parts(inner)
            yield "</li>"
        yield "</ol>\n"
    elif len(value) > MOST_BESIDE:
        yield f"<pre>{escape(_joined(value, chr(10)))}</pre>\n"
    else:
        yield f"{escape(_joined(value, ', '))}\n"


def _table(value: dict[Any, Any]) -> Iterator[str]:
    yield "<dl>\n"
    for key, inner in value.items():
        if not _is_nested(inner):
            yield f"<dt>{escape(key)}</dt><dd>{_plain(inner)}</dd>\n"
    yield "</dl>\n"
    for key, inner in value.items():
        if _is_nested(inner):
            yield f"<details><summary>{escape(key)}</summary>"
            yield from _parts(inner)
            yield "</details>\n"


def _plain(value: Any) -> str:
    text = "" if value is None or value == {} or value == [] else str(value)
    return f"<pre>{escape(text)}</pre>\n" if "\n" in text else f"{escape(text or NOTHING)}\n"


def _is_nested(value: Any) -> bool:
    return isinstance(value, (dict, list)) and bool(value)


def _joined(values: list[Any], between: str) -> str:
    return between.join(map(str, values))
