from __future__ import annotations

from pathlib import Path

from concorde.networks import records


def test_what_is_dropped_takes_along_what_killed_calls_left_of_it(tmp_path: Path) -> None:
    record = {"container": "A-1", "interface": "eth0"}
    records.write(str(tmp_path), record)
    others = [".A-1@eth0.json.17", ".A-2@eth0.json.18", "A-10@eth0.json"]
    for name in others:
        (tmp_path / name).touch()
    for _ in range(2):
        records.drop(records.path(str(tmp_path), "A-1", "eth0"))
        assert sorted(path.name for path in tmp_path.iterdir()) == others[1:]
    records.drop(records.path(f"{tmp_path}/none", "A-1", "eth0"))
