"""A release is made of a tag that is the version, and says what is new."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from testbed.scenario import reading
from tests.paths import ROOT

CHANGELOG = """\
# Changelog

## [Unreleased]

## [1.2.0] - 2026-12-01

### Added

- More.

## [1.1.0] - 2026-11-01

### Fixed

- Less.
"""
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


@pytest.fixture(scope="module")
def release() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", ROOT / ".github" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_notes_are_the_versions_own(release: ModuleType) -> None:
    assert release.notes("v1.2.0", "1.2.0", CHANGELOG) == "### Added\n\n- More.\n"
    assert release.notes("v1.1.0", "1.1.0", CHANGELOG) == "### Fixed\n\n- Less.\n"


@pytest.mark.parametrize(
    ("tag", "version", "words"),
    [
        ("v1.2.1", "1.2.0", "tag v1.2.1: .* says 1.2.0, whose tag is v1.2.0"),
        ("1.2.0", "1.2.0", "whose tag is v1.2.0"),
        ("v1.3.0", "1.3.0", r"write what is new below '## \[1.3.0\]"),
        ("v102", "102", "write what is new"),
    ],
)
def test_what_cannot_be_released_is_refused(release: ModuleType, tag: str, version: str, words: str) -> None:
    with pytest.raises(LookupError, match=words):
        release.notes(tag, version, CHANGELOG)


def test_a_wrong_tag_is_bad_input() -> None:
    command = [sys.executable, ".github/release.py", "v0.0.0"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "tag v0.0.0" in done.stderr


ASSEMBLING = """\
#!/bin/sh
mkdir -p "$CONCORDE_CACHE/kubernetes/images"
echo "$1" >"$CONCORDE_CACHE/kubernetes/images/$1-1.2.0.tar"
"""


def test_a_release_has_the_wheel_the_images_and_their_digests(tmp_path: Path) -> None:
    steps = reading.parse((ROOT / ".github/workflows/release.yml").read_text())["jobs"]["release"]["steps"]
    commands = {step["name"]: step["run"] for step in steps if "run" in step}
    for name, text in (("invokew", ASSEMBLING), ("gh", '#!/bin/sh\necho "$@"\n')):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "concorde_testbed-1.2.0-py3-none-any.whl").write_text("wheel")
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "GITHUB_REF_NAME": "v1.2.0"}
    said = ""
    for name in ("Assemble the images", "Release"):
        done = subprocess.run(
            ["bash", "-e", "-c", commands[name]], cwd=tmp_path, capture_output=True, text=True, check=True,
            env={**environment, "CONCORDE_CACHE": str(tmp_path / "built")},
        )  # fmt: skip
        said += done.stdout
    given = {word for word in said.split() if word.startswith("dist/")}
    assert given == {
        "dist/SHA256SUMS", "dist/concorde_testbed-1.2.0-py3-none-any.whl",
        "dist/deploy.images-1.2.0.tar.gz", "dist/image.build-1.2.0.tar.gz",
    }  # fmt: skip
    assert len((tmp_path / "dist" / "SHA256SUMS").read_text().splitlines()) == 3


def test_our_changelog_has_the_form_that_is_kept() -> None:
    text = Path(ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", heading) for heading in headings[1:])
    assert set(re.findall(r"^### (.*)$", text, re.MULTILINE)) <= KINDS
