"""Data of any depth as HTML: what is nested folds away, and text of many lines is shown as it is.

Not a template: what is recorded of a run's surroundings has values by the ten thousand, and a macro that
calls itself for each takes longer than all the rest of a report.
"""

from __future__ import annotations

import functools
from typing import Any

from markupsafe import Markup, escape

MOST_BESIDE = 3  # values of a list that stand beside each other; more stand below each other
NOTHING = "–"


def html(value: Any) -> Markup:
    """Return data as JSON and YAML have it, or of a record."""
    return Markup(_shown(value))


def _shown(value: Any) -> str:
    if not _is_nested(value):
        return _plain(value)
    if isinstance(value, dict):
        return _table(value)
    if _is_nested(value[0]):
        return f"<ol>{''.join(f'<li>{_shown(inner)}</li>' for inner in value)}</ol>\n"
    values = [str(inner) for inner in value]
    if len(values) > MOST_BESIDE:
        return f"<pre>{_escaped(chr(10).join(values))}</pre>\n"
    return f"{_escaped(', '.join(values))}\n"


def _table(value: dict[Any, Any]) -> str:
    rows, folded = [], []
    for key, inner in value.items():
        name = _escaped(str(key))
        if _is_nested(inner):
            folded.append(f"<details><summary>{name}</summary>{_shown(inner)}</details>\n")
        else:
            rows.append(f"<dt>{name}</dt><dd>{_plain(inner)}</dd>\n")
    return f"<dl>\n{''.join(rows)}</dl>\n{''.join(folded)}"


def _plain(value: Any) -> str:
    text = "" if value is None or value == {} or value == [] else str(value)
    return f"<pre>{_escaped(text)}</pre>\n" if "\n" in text else f"{_escaped(text or NOTHING)}\n"


def _is_nested(value: Any) -> bool:
    return isinstance(value, (dict, list)) and bool(value)


@functools.lru_cache(maxsize=10_000)
def _escaped(text: str) -> str:
    """Return a text as HTML has it; names, and most values, are the same in each pod."""
    return str(escape(text))
