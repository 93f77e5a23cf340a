from __future__ import annotations

from pathlib import Path

import pytest

from testbed.providers.helpers import persistence


def test_a_relative_state_directory_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", "state")
    assert persistence.directory() == tmp_path / ".local" / "state" / "concorde-testbed" / "clusters"
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert persistence.directory() == Path("/state/concorde-testbed/clusters")


def test_paths_are_remembered_until_they_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert persistence.names() == []
    assert persistence.remembered("a") is None
    persistence.remember("a", {"b": "/b.conf"})
    persistence.remember("a", {"a": "/a.conf"})
    assert persistence.names() == ["a"]
    assert persistence.remembered("a") == {"a": "/a.conf"}
    persistence.forget("a")
    persistence.forget("a")
    assert list(persistence.directory().iterdir()) == []
