"""The pages as Sphinx gets them: filled with what is made of the code, links to directories resolved."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from docs.parts import fields, figures, links, marks, placeholders, recordings, statuses
from testbed.resources import HOME

DRAWN = "drawn"  # the tag, as in ``-t drawn``: figures are drawn, which takes more than all the rest
GALLERY = HOME / "docs" / "gallery.md"


def setup(app: Sphinx) -> dict[str, Any]:
    """Let Sphinx know of all this."""
    app.connect("builder-inited", _draw)
    app.connect("source-read", _fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _draw(app: Sphinx) -> None:
    if app.tags.has(DRAWN):
        figures.draw(GALLERY.read_text(encoding="utf-8"))


def _fill(app: Sphinx, page: str, source: list[str]) -> None:
    made: dict[str, Callable[..., str]] = {
        "exit-statuses": statuses.render,
        "figure": partial(figures.shown, drawn=app.tags.has(DRAWN)),
        "placeholders": placeholders.render,
        "recordings": recordings.render,
        "scenario-fields": fields.render,
    }
    filled = marks.explained(marks.filled(source[0], made))
    source[0] = links.resolved(filled, Path(app.env.doc2path(page)), HOME)
