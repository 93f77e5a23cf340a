"""Programs of Debian's packages, fetched by the real apt from a repository in a directory."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from testbed.supplies import cache, packages
from tests.waiting import PATIENCE

needs_apt = pytest.mark.skipif(
    shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None, reason="needs apt"
)
NAME = "testbed-example"


@pytest.fixture(autouse=True)
def example(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be one package, which no machine has installed."""
    monkeypatch.setattr(packages, "PACKAGES", {NAME: ("exampled", "examplec")})


def make_archive(directory: Path) -> Path:
    """Make the package: two programs, one of which says where its libraries are looked for."""
    tree = directory / "tree"
    for program in ("exampled", "examplec"):
        file = tree / "usr" / "sbin" / program
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text('#!/bin/sh\necho "$LD_LIBRARY_PATH" "$@"\n', encoding="utf-8")
        file.chmod(0o755)
    (tree / "usr" / "lib" / "any-linux-gnu").mkdir(parents=True)
    (tree / "DEBIAN").mkdir()
    architecture = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, check=True)
    (tree / "DEBIAN" / "control").write_text(
        f"Package: {NAME}\nVersion: 1.0\nArchitecture: {architecture.stdout.decode().strip()}\n"
        "Maintainer: nobody <nobody@example.invalid>\nDescription: an example\n",
        encoding="utf-8",
    )
    archive = directory / f"{NAME}_1.0.deb"
    subprocess.run(
        ["dpkg-deb", "--build", "--root-owner-group", tree, archive], check=True, capture_output=True
    )
    return archive


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a directory that apt takes for a repository: the archive, and a list of it with its digest."""
    directory = tmp_path / "repository"
    directory.mkdir()
    archive = make_archive(directory)
    about = subprocess.run(["dpkg-deb", "--field", archive], capture_output=True, check=True).stdout.decode()
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    (directory / "Packages").write_text(
        f"{about}Filename: ./{archive.name}\nSize: {archive.stat().st_size}\nSHA256: {digest}\n",
        encoding="utf-8",
    )
    return directory


def sources(tmp_path: Path, repository: Path, options: str = "[trusted=yes] ") -> Path:
    """Return a directory as /etc/apt is one; who trusts a repository takes it without a signature."""
    directory = tmp_path / "apt"
    (directory / "sources.list.d").mkdir(parents=True)
    (directory / "sources.list").write_text(f"deb {options}file:{repository} ./\n", encoding="utf-8")
    return directory


def kept() -> list[str]:
    return sorted(file.name for file in cache.packages().iterdir())


@needs_apt
def test_a_package_is_fetched_and_unpacked_and_its_programs_run(tmp_path: Path, repository: Path) -> None:
    said: list[str] = []
    with pytest.raises(
        LookupError, match=rf"no program exampled, of Debian's package {NAME}: ./invokew prog"
    ):
        packages.find(NAME, "exampled")
    packages.get(NAME, said.append, sources(tmp_path, repository))
    assert said == [f"fetching Debian's package {NAME}"]
    program = packages.find(NAME, "exampled")
    done = subprocess.run([program, "a b"], capture_output=True, encoding="utf-8", check=True)
    libraries = {str(Path(one).resolve()) for one in done.stdout.split()[0].split(":")}
    assert str(cache.packages() / NAME / "usr/lib/any-linux-gnu") in libraries
    assert done.stdout.endswith(" a b\n")
    assert list(packages.missing(NAME)) == []
    assert kept() == [NAME, f"{NAME}.lock"]


@needs_apt
def test_what_is_there_is_not_fetched_again(tmp_path: Path, repository: Path) -> None:
    packages.get(NAME, sources=sources(tmp_path, repository))
    packages.get(NAME, pytest.fail, Path("/nowhere"))


@needs_apt
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("archive", "Hash Sum mismatch|has unexpected size"),
        ("signature", "does not have a Release file"),
    ],
)
def test_what_nobody_vouches_for_is_not_used(
    tmp_path: Path, repository: Path, change: str, words: str
) -> None:
    if change == "archive":
        with (repository / f"{NAME}_1.0.deb").open("ab") as archive:
            archive.write(b"more")
    options = "" if change == "signature" else "[trusted=yes] "
    with pytest.raises(RuntimeError, match=words):
        packages.get(NAME, sources=sources(tmp_path, repository, options))
    assert list(packages.missing(NAME))
    assert kept() == [f"{NAME}.lock"]


@needs_apt
def test_sources_without_the_package_are_no_failure_but_lack_it(tmp_path: Path, repository: Path) -> None:
    (repository / "Packages").write_text("", encoding="utf-8")
    with pytest.raises(LookupError, match=f"this machine's package sources have no {NAME}"):
        packages.get(NAME, sources=sources(tmp_path, repository))


@needs_apt
def test_a_package_that_lacks_a_program_leaves_what_was_there(
    tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = sources(tmp_path, repository)
    packages.get(NAME, sources=there)
    monkeypatch.setattr(packages, "PACKAGES", {NAME: ("exampled", "exampled-too")})
    with pytest.raises(RuntimeError, match=f"{NAME} has no program exampled-too"):
        packages.get(NAME, sources=there)
    assert packages.find(NAME, "exampled").exists()


@needs_apt
def test_two_at_once_fetch_it_once(tmp_path: Path, repository: Path) -> None:
    there = sources(tmp_path, repository)
    said: list[str] = []
    threads = [threading.Thread(target=packages.get, args=(NAME, said.append, there)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert said.count(f"fetching Debian's package {NAME}") == 1
    assert packages.find(NAME, "examplec").exists()


@needs_apt
def test_what_an_interrupted_one_left_does_not_matter(tmp_path: Path, repository: Path) -> None:
    left = cache.packages() / f"{NAME}.unfinished" / "root"
    (left / "usr").mkdir(parents=True)
    packages.get(NAME, sources=sources(tmp_path, repository))
    assert packages.find(NAME, "exampled").exists()
    assert not left.parent.exists()


def test_a_program_of_the_machine_s_path_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "PACKAGES", {"coreutils": ("sleep",)})
    assert packages.find("coreutils", "sleep") == Path(shutil.which("sleep") or "")
    assert packages.get("coreutils", pytest.fail) == packages.find("coreutils", "sleep").parent
