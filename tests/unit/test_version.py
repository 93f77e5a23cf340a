"""Harness, plugin and images have one version, and ``plugin/concorde/__init__.py`` is where it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import concorde

from testbed.resources import version
from testbed.scenario import reading
from testbed.supplies import addresses, images, services
from tests.paths import ROOT


def read(*parts: str) -> str:
    return Path(ROOT, *parts).read_text(encoding="utf-8")


def test_the_plugin_says_it() -> None:
    assert version() == concorde.VERSION


def test_the_harness_says_it() -> None:
    done = subprocess.run(
        [sys.executable, "tasks.py", "--version"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"invokew {version()}\n"


def test_the_images_are_called_by_it_wherever_they_are_named() -> None:
    ours = (images.PAUSE, images.TRAFFIC, images.INSTALLER, addresses.IMAGE, services.IMAGE)
    assert {name.rpartition(":")[2] for name in ours} == {version()}
    manifests = [file for part in ("plugin", "edge") for file in (ROOT / part / "deploy").rglob("*.yaml")]
    named = [tag for file in manifests for tag in re.findall(r"testbed\.local/[\w-]+:(\S+)", read(str(file)))]
    assert set(named) == {version()}


def test_it_is_what_is_cited() -> None:
    assert str(reading.parse(read("CITATION.cff"))["version"]) == version()


def test_no_other_place_holds_it() -> None:
    """What a program reads is derived; the manifests and the citation are checked above."""
    listing = ["git", "grep", "-lF", f'"{version()}"', "--", "*.py", "*.toml", "*.yml", "*.sh"]
    found = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    assert set(found) <= {"plugin/concorde/__init__.py"}
