"""The project's own files are where they are said to be."""

from __future__ import annotations

import os
import subprocess
import sys
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


def test_in_a_checkout_of_somebody_elses_all_is_built_in_ones_own_cache(tmp_path: Path) -> None:
    """``access`` stands in for the kernel: root may write anywhere."""
    lines = (
        "import os; os.access = lambda *_: False; from testbed import resources as r; print(r.BUILT_PLUGIN)"
    )
    env = {"PATH": os.defpath, resources.CACHE: str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", lines], cwd=ROOT, env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{tmp_path}/build/cni\n"


def test_what_others_look_for_there_is_there() -> None:
    assert (resources.PLUGIN / "build.py").is_file()
    assert (resources.PLUGIN / "concorde" / "__main__.py").is_file()
    assert (resources.SCENARIOS / "contmec.yaml").is_file()
    assert resources.GO_REQUIREMENT.is_file()


def test_a_command_is_said_as_it_is_typed_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert resources.as_typed("next: ./invokew bench mine.yaml") == "next: ./invokew bench mine.yaml"
    assert resources.shown(ROOT / "scenarios" / "contmec.yaml") == Path("scenarios/contmec.yaml")
    monkeypatch.chdir(tmp_path)
    assert resources.as_typed("next: ./invokew bench mine.yaml") == f"next: {ROOT}/invokew bench mine.yaml"
    assert resources.shown(ROOT / "scenarios" / "contmec.yaml") == ROOT / "scenarios" / "contmec.yaml"


def test_where_there_is_no_directory_any_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert resources.as_typed("./invokew status") == f"{ROOT}/invokew status"
    assert resources.shown(ROOT / "invokew") == ROOT / "invokew"
