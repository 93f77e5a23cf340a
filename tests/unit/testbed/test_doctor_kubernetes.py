"""What is said where real Kubernetes cannot run."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed import doctor
from testbed.assembly import demand
from testbed.supplies import binaries


def test_an_ordinary_user_is_told_that_it_needs_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(LookupError, match=r"--orchestrator kubernetes: needs root: .* --orchestrator cni"):
        demand("netns", "kubernetes")


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "loopback").touch()
    monkeypatch.setattr("testbed.resources.REFERENCE_PLUGINS", (str(tmp_path),))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name, path: None if name in ("etcd", "runc") else name)
    missing = ", ".join(doctor.missing_for_kubernetes())
    assert "packages are missing: apt-get install etcd-server runc" in missing


def test_missing_programs_are_named_with_what_gets_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def find() -> None:
        raise LookupError("no Kubernetes 1.20.2: run ./invokew kubernetes.get")

    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(binaries, "find", find)
    assert list(doctor.missing_for_kubernetes())[-1].endswith("run ./invokew kubernetes.get")


def test_cni_needs_nothing_of_all_this() -> None:
    demand("netns", "cni")
    with pytest.raises(LookupError, match=r"no orchestrator 'swarm' \(orchestrators: cni, kubernetes\)"):
        demand("netns", "swarm")
