"""The pages as Sphinx gets them: filled with what is made of the code, links to directories resolved."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from docs.parts import fields, figures, links, marks, placeholders, recordings, statuses, topologies
from testbed.resources import HOME

DRAWN = "drawn"  # the tag, as in ``-t drawn``: figures are drawn, which takes more than all the rest
DOCS = HOME / "docs"


def setup(app: Sphinx) -> dict[str, Any]:
    """Let Sphinx know of all this."""
    app.connect("builder-inited", draw)
    app.connect("source-read", _fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def draw(app: Sphinx) -> None:
    """Draw the figures of all pages, if they are asked for."""
    if app.tags.has(DRAWN):
        figures.draw("\n".join(page.read_text(encoding="utf-8") for page in sorted(DOCS.rglob("*.md"))))


def _fill(app: Sphinx, page: str, source: list[str]) -> None:
    made: dict[str, Callable[..., str]] = {
        "exit-statuses": statuses.render,
        "figure": partial(figures.shown, drawn=app.tags.has(DRAWN)),
        "placeholders": placeholders.render,
        "recordings": recordings.render,
        "scenario-fields": fields.render,
        "topology": topologies.render,
    }
    filled = marks.explained(marks.filled(source[0], made))
    source[0] = links.resolved(filled, Path(app.env.doc2path(page)), HOME)
