from __future__ import annotations

from pathlib import Path

import pytest

from testbed.providers import helpers


def test_a_relative_state_directory_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", "state")
    assert helpers.directory() == tmp_path / ".local" / "state" / "concorde-testbed" / "clusters"
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert helpers.directory() == Path("/state/concorde-testbed/clusters")


def test_paths_are_remembered_until_they_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert helpers.names() == []
    assert helpers.remembered("a") is None
    helpers.remember("a", {"b": "/b.conf"})
    helpers.remember("a", {"a": "/a.conf"})
    assert helpers.names() == ["a"]
    assert helpers.remembered("a") == {"a": "/a.conf"}
    helpers.forget("a")
    helpers.forget("a")
    assert list(helpers.directory().iterdir()) == []
