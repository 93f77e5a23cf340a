"""The project's own files are where they are said to be."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from testbed import resources
from tests.paths import ROOT

BUILT = {resources.BUILT_PLUGIN, resources.MACHINES}  # these are made when they are needed
NAMED = {name: path for name, path in vars(resources).items() if isinstance(path, Path)}


@pytest.mark.parametrize("name", [name for name, path in NAMED.items() if path not in BUILT])
def test_what_is_named_is_in_a_checkout(name: str) -> None:
    assert NAMED[name].exists()
    assert NAMED[name].is_relative_to(ROOT)


@pytest.mark.parametrize("path", sorted(BUILT), ids=lambda path: path.name)
def test_what_is_built_is_never_committed(path: Path) -> None:
    ignored = subprocess.run(["git", "check-ignore", "--quiet", str(path / "file")], cwd=ROOT, check=False)
    assert ignored.returncode == 0


def test_what_others_look_for_there_is_there() -> None:
    assert (resources.PLUGIN / "build.py").is_file()
    assert (resources.PLUGIN / "concorde" / "__main__.py").is_file()
    assert (resources.SCENARIOS / "contmec.yaml").is_file()
    assert resources.GO_REQUIREMENT.is_file()
