from __future__ import annotations

from pathlib import Path

from concorde.locks import AgentLock


def test_one_has_it_until_it_gives_it_back(tmp_path: Path) -> None:
    directory = str(tmp_path / "state" / "node")
    one, other = AgentLock(directory, "0.9.0"), AgentLock(directory, "0.9.0")
    assert one.take()
    assert not other.take()
    assert not one.is_wanted()
    one.close()
    assert other.take()


def test_a_newer_version_asks_for_it_and_an_older_does_not(tmp_path: Path) -> None:
    directory = str(tmp_path / "state" / "node")
    one, older, newer = (AgentLock(directory, version) for version in ("0.9.0", "0.8.9", "0.10.0"))
    assert one.take()
    assert not older.take()
    assert not one.is_wanted()
    assert not newer.take()
    assert one.is_wanted()
    one.close()
    assert older.take()  # whoever comes first has it, until it looks
    assert not newer.take()
    assert older.is_wanted()


def test_one_whose_file_is_gone_is_none(tmp_path: Path) -> None:
    directory = str(tmp_path / "state" / "node")
    one = AgentLock(directory, "0.9.0")
    assert one.take()
    Path(directory, "agent.lock").unlink()
    assert not one.is_there()
    assert AgentLock(directory, "0.9.0").take()
