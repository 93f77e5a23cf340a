from __future__ import annotations

from pathlib import Path

import pytest

from testbed.clusters import remembered


def test_a_relative_state_directory_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", "state")
    assert remembered.directory() == tmp_path / ".local" / "state" / "concorde-testbed" / "clusters"
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert remembered.directory() == Path("/state/concorde-testbed/clusters")


def test_paths_are_remembered_until_they_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert remembered.names() == []
    assert remembered.kubeconfigs("a") is None
    remembered.remember("a", {"b": "/b.conf"})
    remembered.remember("a", {"a": "/a.conf"})
    assert remembered.names() == ["a"]
    assert remembered.kubeconfigs("a") == {"a": "/a.conf"}
    remembered.forget("a")
    remembered.forget("a")
    assert list(remembered.directory().iterdir()) == []
