"""Which recordings are kept, and what each says."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from bench.recording.archive import PACKED, TABLE
from testbed.resources import HOME

REFERENCE = HOME / "reports" / "reference"


def render() -> str:
    """Return a section for each recording and study as Markdown; its name is its anchor."""
    return "\n".join(_section(directory) for directory in sorted(REFERENCE.iterdir()) if directory.is_dir())


def _section(directory: Path) -> str:
    rows = json.loads((directory / TABLE).read_text(encoding="utf-8"))
    titles = list(dict.fromkeys(row["title"] for row in rows))
    verdicts = Counter(row["verdict"] for row in rows)
    said = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    files = " · ".join(_files(directory))
    return f"### {directory.name}\n\n{'; '.join(titles)}. Verdicts: {said}. {files}\n"


def _files(directory: Path) -> Iterator[str]:
    """Yield links to the files that hold it: of a study to its index, for its recordings are many."""
    for file in sorted([*directory.glob("*.json"), directory / PACKED]):
        yield f"[{file.name}](/{file.relative_to(HOME).as_posix()})"
