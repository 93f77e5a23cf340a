"""The pages of the docs, and a copy of the project in which their commands are typed."""

from __future__ import annotations

import shutil
from pathlib import Path

from docs.parts.marks import Block, blocks
from tests.paths import ROOT

PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(file for file in (ROOT / "docs").rglob("*.md")),
]
# What a copy has no use for; its packages are those of this one.
LEFT_OUT = shutil.ignore_patterns(".*", "build", "reports", "__pycache__", "tests")


def all_blocks() -> dict[str, Block]:
    """Return every block of commands by page and line."""
    return {
        f"{page.relative_to(ROOT)}:{block.line}": block
        for page in PAGES
        for block in blocks(page.read_text(encoding="utf-8"))
    }


def copied(to: Path) -> Path:
    """Make a copy of the project, which a page's commands may write to; return it."""
    shutil.copytree(ROOT, to, ignore=LEFT_OUT)
    (to / ".venv").symlink_to(ROOT / ".venv")
    (to / "reports").mkdir()
    return to
