from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed.supplies import binaries, getting
from testbed.supplies.binaries import MANIFEST, PROGRAMS
from tests.unit.testbed.supplies.builders import MakePrograms, write_program


@pytest.fixture
def kept(make_programs: MakePrograms) -> Path:
    """A version that is kept, and the directory where."""
    return getting.get("1.20.2", getting.from_directory(make_programs())).directory


def test_what_is_kept_is_found(kept: Path, tmp_path: Path) -> None:
    found = binaries.find("1.20.2")
    assert found.source == f"copied from {tmp_path / 'given'}"
    assert found.programs == PROGRAMS
    assert found.path("kubelet") == kept / "kubelet"
    assert found.path("kubelet").stat().st_mode & 0o777 == 0o755


def test_without_anything_kept_the_message_says_what_to_do() -> None:
    with pytest.raises(LookupError, match=r"no Kubernetes 1\.20\.2 in .*: run ./invokew kubernetes\.get"):
        binaries.find("1.20.2")


def test_a_changed_program_is_refused(kept: Path) -> None:
    write_program(kept / "kubelet", "Kubernetes v1.20.2, and something else")
    with pytest.raises(RuntimeError, match=r"changed files: kubelet .* run ./invokew"):
        binaries.find("1.20.2")


def test_a_missing_or_unusable_program_is_refused(kept: Path) -> None:
    (kept / "kubectl").unlink()
    (kept / "kubelet").chmod(0o644)
    with pytest.raises(RuntimeError, match="changed files: kubectl, kubelet "):
        binaries.find("1.20.2")


@pytest.mark.parametrize("manifest", ["", "{", "[]", "{}", '{"source": "x", "sha256": 1}'])
def test_a_damaged_manifest_is_refused(kept: Path, manifest: str) -> None:
    (kept / MANIFEST).write_text(manifest, encoding="utf-8")
    with pytest.raises(RuntimeError, match=r"manifest\.json is damaged: run"):
        binaries.find("1.20.2")


def test_a_manifest_without_all_programs_is_refused(kept: Path) -> None:
    manifest = json.loads((kept / MANIFEST).read_text(encoding="utf-8"))
    del manifest["sha256"]["kubelet"]
    (kept / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(RuntimeError, match="changed files: kubelet"):
        binaries.find("1.20.2")


def test_a_program_that_was_not_given_is_not_found(kept: Path) -> None:
    with pytest.raises(LookupError, match=r"no flanneld beside Kubernetes 1\.20\.2 .* --flannel FILE"):
        binaries.find("1.20.2").path("flanneld")


def test_another_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(LookupError, match="no Kubernetes for riscv64"):
        binaries.architecture()
