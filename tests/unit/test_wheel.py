"""The wheel: the whole tree in one package, which runs where there is nothing else of ours."""

from __future__ import annotations

import email
import hashlib
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from bench.cli.table import VERBS
from testbed.resources import version
from tests.paths import ROOT
from tests.wheels import build

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
BROUGHT = SETTINGS["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(build(tmp_path_factory.mktemp("wheel")))


@pytest.fixture(scope="module")
def installed(wheel: zipfile.ZipFile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("installed")
    wheel.extractall(directory)
    return directory


def run(installed: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "concorde_testbed", *words],
        cwd=installed.parent,
        env={**os.environ, "PYTHONPATH": str(installed), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_one_name_is_all_that_it_leaves_beside_other_packages(wheel: zipfile.ZipFile) -> None:
    tops = {name.partition("/")[0] for name in wheel.namelist()}
    assert tops == {"concorde_testbed", f"concorde_testbed-{version()}.dist-info"}


def test_it_has_every_file_of_the_rooms_that_it_brings_and_no_other(wheel: zipfile.ZipFile) -> None:
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *BROUGHT]
    kept = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    inside = "concorde_testbed/tree/"
    brought = {name.removeprefix(inside) for name in wheel.namelist() if name.startswith(inside)}
    assert brought == {name for name in kept if (ROOT / name).is_file()}


def test_every_package_that_the_code_is_made_of_is_brought() -> None:
    packages = {file.parent.name for file in ROOT.glob("*/__init__.py")} - {"concorde_testbed"}
    assert packages <= set(BROUGHT)


def test_it_needs_what_is_pinned_and_in_those_versions(wheel: zipfile.ZipFile) -> None:
    metadata = email.message_from_bytes(wheel.read(f"concorde_testbed-{version()}.dist-info/METADATA"))
    pins = [line for line in (ROOT / "requirements/run.txt").read_text().splitlines() if line[:1].isalnum()]
    needed = {word.partition(";")[0].strip() for word in metadata.get_all("Requires-Dist", [])}
    assert needed == {pin.removesuffix("\\").partition(";")[0].strip() for pin in pins}
    assert all("==" in word for word in needed)


def test_the_same_tree_makes_the_same_bytes(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    assert wheel.filename is not None
    digests = {hashlib.sha256(file.read_bytes()).digest() for file in (Path(wheel.filename), build(tmp_path))}
    assert len(digests) == 1


def test_what_builds_it_is_pinned_as_the_tests_have_it() -> None:
    (builder,) = SETTINGS["build-system"]["requires"]
    assert f"\n{builder} " in (ROOT / "requirements/test.txt").read_text(encoding="utf-8")


def test_it_says_its_name_and_version(installed: Path) -> None:
    assert run(installed, "--version").stdout == f"concorde-testbed {version()}\n"


def test_it_finds_its_scenarios_and_names_a_mistake_in_one(installed: Path) -> None:
    done = run(installed, "bench", "--set", "flows[2].to=A-9")
    assert done.returncode == 2
    assert "contmec.yaml: flows[2].to: no pod 'A-9' (pods: A-1, A-2, A-3, A-4, B-1, B-2)" in done.stderr


def test_it_names_commands_as_they_are_to_be_typed_there(installed: Path, tmp_path: Path) -> None:
    done = run(installed, "doctor", PATH=str(tmp_path))
    assert "concorde-testbed capture" in done.stdout
    assert "invokew" not in done.stdout


def test_it_has_the_verbs_that_need_no_repository(installed: Path) -> None:
    listed = {line.split()[0] for line in run(installed, "--list").stdout.splitlines()[2:] if line.strip()}
    assert {"bench", "figures", "up", "doctor", "image.build"} <= listed
    of_the_repository = {name for name, verb in VERBS.items() if verb.of_the_repository}
    assert not listed & {*of_the_repository, "test.default"}


def test_it_writes_nothing_into_itself(installed: Path, tmp_path: Path) -> None:
    lines = "from testbed import resources as r; print(r.BUILT_PLUGIN, r.MACHINES)"
    done = subprocess.run(
        [sys.executable, "-c", lines],
        cwd=tmp_path,
        env={"PYTHONPATH": str(installed / "concorde_testbed" / "tree"), "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert all(Path(place).is_relative_to(tmp_path) for place in done.stdout.split())
