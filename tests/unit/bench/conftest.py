from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.presentation.figures.registry import FIGURES
from bench.recording.directory import Recording
from tests.unit.bench.builders import DATA


@pytest.fixture
def undrawn(own_parts: None) -> None:
    """Drawing takes most of an analysis' time."""
    FIGURES.clear()


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[[str], Recording]:
    """Return a function that copies one of the stored recordings to where it may be changed."""

    def copy(name: str) -> Recording:
        return Recording(Path(shutil.copytree(DATA / name, tmp_path / name)))

    return copy
