from __future__ import annotations

from pathlib import Path

import pytest

from testbed.providers.helpers import keeping


def test_a_relative_state_directory_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", "state")
    assert keeping.directory() == tmp_path / ".local" / "state" / "concorde-testbed" / "clusters"
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert keeping.directory() == Path("/state/concorde-testbed/clusters")


def test_paths_are_remembered_until_they_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert keeping.names() == []
    assert keeping.remembered("a") is None
    keeping.remember("a", {"b": "/b.conf"})
    keeping.remember("a", {"a": "/a.conf"})
    assert keeping.names() == ["a"]
    assert keeping.remembered("a") == {"a": "/a.conf"}
    keeping.forget("a")
    keeping.forget("a")
    assert list(keeping.directory().iterdir()) == []
