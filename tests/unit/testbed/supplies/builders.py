"""Stand-ins for Kubernetes' programs: scripts that only say which version they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

MakePrograms = Callable[..., Path]


def write_program(file: Path, words: str) -> None:
    """Write a program that says these words, whatever it is asked."""
    file.write_text(f"#!/bin/sh\necho '{words}'\n", encoding="utf-8")
    file.chmod(0o755)
