"""What the wheel says that it needs: what requirements/run.txt pins, in those versions.

Hatchling calls this when it builds the wheel. A wheel cannot say digests; requirements/run.txt has them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LIST = "requirements/run.txt"


class Pinned(MetadataHookInterface):
    """Hatchling's metadata with the dependencies filled in."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill in the dependencies; see hatchling's documentation of metadata hooks."""
        metadata["dependencies"] = requirements((Path(self.root) / LIST).read_text(encoding="utf-8"))


def requirements(text: str) -> list[str]:
    """Return the requirements of a list that pip takes, without digests and comments."""
    return [line.removesuffix("\\").strip() for line in text.splitlines() if line[:1].isalnum()]
