"""What is to be deposited, in one archive."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from bench import pipeline
from bench.console.statuses import HELD
from bench.recording.directory import Recording
from bench.studies.reproduction import bundle, claims, regeneration, verbs
from tests import cases
from tests.paths import ROOT

CONTMEC = Path("reports", "reference", "contmec")


def git(home: Path, *arguments: str) -> str:
    settings = ["-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", "-C", home, *settings, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a checkout with a program, a page and a recording, that is taken for the project's."""
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    home = tmp_path / "home"
    shutil.copytree(ROOT / CONTMEC, home / CONTMEC)
    (home / "page.md").write_text("a page\n")
    (home / "program").write_text("#!/bin/sh\n")
    (home / "program").chmod(0o755)
    git(home.parent, "init", "--quiet", str(home))
    git(home, "add", "--all")
    git(home, "commit", "--quiet", "--message", "all")
    monkeypatch.setattr(verbs, "HOME", home)
    return home


def made(to: Path, *runs: str, reports: Path = Path("reports")) -> tarfile.TarFile:
    assert verbs.bundle(str(to), runs, reports) == HELD
    return tarfile.open(fileobj=io.BytesIO(to.read_bytes()))


def read(tar: tarfile.TarFile, path: str) -> bytes:
    stream = tar.extractfile(f"{tar.getnames()[0].partition('/')[0]}/{path}")
    assert stream is not None
    return stream.read()


def test_a_bundle_has_what_is_committed_what_that_is_and_a_digest_of_each_file(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "page.md").write_text("changed\n")
    (home / "other.md").write_text("not committed\n")
    tar = made(tmp_path / "to.tar.xz")
    commit = git(home, "rev-parse", "HEAD")
    assert capsys.readouterr().out.splitlines() == [
        "note: what is not committed is not in it",
        f"commit {commit}: {tmp_path / 'to.tar.xz'}",
    ]
    name = f"concorde-testbed-{commit[:12]}"
    kept = {f"{CONTMEC}/{file.name}" for file in (ROOT / CONTMEC).iterdir()}
    paths = {"page.md", "program", "ro-crate-metadata.json", "SHA256SUMS", *kept}
    assert set(tar.getnames()) == {f"{name}/{path}" for path in paths}
    assert read(tar, "page.md") == b"a page\n"
    assert {path for path in paths if tar.getmember(f"{name}/{path}").mode & 0o111} == {"program"}
    sums = dict(line.split("  ")[::-1] for line in read(tar, "SHA256SUMS").decode().splitlines())
    assert sums == {path: hashlib.sha256(read(tar, path)).hexdigest() for path in paths - {"SHA256SUMS"}}
    found = {one["@id"]: one for one in json.loads(read(tar, "ro-crate-metadata.json"))["@graph"]}
    assert {part["@id"] for part in found["./"]["hasPart"]} == paths - {"ro-crate-metadata.json"}
    run, analysis = (found[one["@id"]] for one in found["./"]["mentions"])
    assert run["result"] == [{"@id": f"{CONTMEC}/packed.xz"}] == analysis["object"]
    assert analysis["result"] == [{"@id": f"{CONTMEC}/verdicts.json"}]


def test_the_same_input_gives_the_same_bytes(home: Path, tmp_path: Path) -> None:
    first = bundle.source(home)
    made(tmp_path / "one.tar.xz")
    for file in home.rglob("*.md"):
        os.utime(file, (1, 1))
    clone = tmp_path / "clone"
    git(home.parent, "-c", "core.umask=077", "clone", "--quiet", str(home), str(clone))
    other = bundle.source(clone)
    assert (
        bundle.render(other.commit, dict(reversed(list(other.members.items()))))
        == (tmp_path / "one.tar.xz").read_bytes()
    )
    assert first == other


@pytest.mark.long(one_in=0)
def test_recordings_of_ones_own_are_put_in_packed(
    home: Path, recorded: Callable[[str], Recording], tmp_path: Path
) -> None:
    recording = recorded("held")
    pipeline.analyse(recording)
    tar = made(tmp_path / "to.tar.xz", "held", reports=tmp_path)
    found = json.loads(read(tar, "ro-crate-metadata.json"))["@graph"]
    actions = [one["name"] for one in found if one["@type"] == "CreateAction"]
    assert f"run {recording.run_record().run_id}" in actions
    assert len(actions) == 4
    assert json.loads(read(tar, "reports/held/verdicts.json"))[0]["verdict"] == "held"


def test_what_cannot_be_bundled_is_named_and_nothing_is_written(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = tmp_path / "to.tar.xz"
    with pytest.raises(LookupError, match=r"--to: must name an archive, as in bundle\.tar\.xz, not x\.zip"):
        verbs.bundle("x.zip", [], tmp_path)
    with pytest.raises(LookupError, match="no recording 'nothing'"):
        verbs.bundle(str(to), ["nothing"], tmp_path)
    git(home, "rm", "--quiet", "-r", "reports")
    git(home, "commit", "--quiet", "--message", "none")
    with pytest.raises(LookupError, match="has no recording; put one of yours in"):
        verbs.bundle(str(to), [], tmp_path)
    (home / CONTMEC).mkdir(parents=True)
    (home / CONTMEC / "packed.xz").write_bytes(b"something else")
    git(home, "add", "--all")
    git(home, "commit", "--quiet", "--message", "broken")
    with pytest.raises(LookupError, match=rf"^{CONTMEC}/packed\.xz: no packed recording"):
        verbs.bundle(str(to), [], tmp_path)
    monkeypatch.setattr(verbs, "HOME", tmp_path)
    with pytest.raises(LookupError, match="is it a checkout"):
        verbs.bundle(str(to), [], tmp_path)
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(LookupError, match="git: No such file or directory"):
        verbs.bundle(str(to), [], tmp_path)
    assert not to.exists()


@pytest.mark.long(one_in=0)
def test_unpacked_elsewhere_everything_follows_from_what_was_recorded_without_git(tmp_path: Path) -> None:
    """Of claims and recordings a share; all, with their pages, for the full count."""
    made(tmp_path / "to.tar.xz").close()
    subprocess.run(["tar", "-xf", "to.tar.xz"], cwd=tmp_path, check=True)
    (unpacked,) = tmp_path.glob("concorde-testbed-*")
    summed = subprocess.run(["sha256sum", "--quiet", "--check", "SHA256SUMS"], cwd=unpacked, check=False)
    assert summed.returncode == 0
    tried = cases.chosen([claim.id for claim in claims.read().claims])
    typed(unpacked, "reproduce", "--recorded", *(word for one in tried for word in ("--claim", one)))
    kept = unpacked / "reports"
    if (some := cases.chosen(regeneration.everything(kept))) != regeneration.everything(kept):
        kept = unpacked / "some"
        kept.mkdir()
        for one in some:
            one.rename(kept / one.name)
    typed(unpacked, "figures", "--all", "--check", "--reports", kept.name)


def typed(unpacked: Path, *words: str) -> None:
    done = subprocess.run(
        [sys.executable, "tasks.py", *words], cwd=unpacked, env={"PATH": "/nonexistent"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
