from __future__ import annotations

from pathlib import Path

import pytest

from testbed import resources
from testbed.supplies.binaries import PROGRAMS
from tests.unit.testbed.supplies.builders import MakePrograms, write_program


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep every test away from the real cache; return the one it has instead."""
    monkeypatch.setenv(resources.CACHE, str(tmp_path / "cache"))
    return tmp_path / "cache" / "kubernetes"


@pytest.fixture
def make_programs(tmp_path: Path) -> MakePrograms:
    """Return a function that makes a directory of programs of a version."""

    def make(version: str = "1.20.2", name: str = "given") -> Path:
        directory = tmp_path / name
        directory.mkdir()
        for program in PROGRAMS:
            write_program(directory / program, f"Kubernetes v{version}")
        return directory

    return make
