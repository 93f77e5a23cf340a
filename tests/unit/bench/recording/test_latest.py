"""``latest`` leads to the last complete recording, is counted by nobody, and replaces nobody's file."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bench.cli.verbs import asked
from bench.recording import archive, directory
from bench.recording.directory import Recording, find, is_recording
from testbed.scenario import load
from tests.paths import ROOT
from tests.unit.bench.builders import DATA

SCENARIO = load(ROOT / "scenarios" / "contmec.yaml")
RUN = "20220310T120000Z-contmec-pod"


def finished(reports: Path, hour: int = 12) -> Recording:
    recording = Recording.begin(reports, SCENARIO, datetime(2022, 3, 10, hour, tzinfo=UTC))
    shutil.copytree(DATA / "held", recording.directory, dirs_exist_ok=True)
    return recording.finish()


def test_it_is_a_relative_link_to_what_was_completed_last(tmp_path: Path) -> None:
    late = Recording.begin(tmp_path, SCENARIO, datetime(2022, 3, 10, 11, tzinfo=UTC))
    assert not os.path.lexists(tmp_path / "latest")
    finished(tmp_path)
    assert str((tmp_path / "latest").readlink()) == RUN
    late.finish()
    assert str((tmp_path / "latest").readlink()) == late.run_id


def test_it_is_found_by_its_name_under_its_own(tmp_path: Path) -> None:
    recording = finished(tmp_path)
    assert find("latest", tmp_path).directory == recording.directory
    assert find(str(tmp_path / "latest"), Path("elsewhere")).directory == recording.directory
    options = asked.Options(set_=[], scale=1.0, provider="netns", orchestrator="cni", reports=str(tmp_path))
    assert asked.request("latest", (), **options).scenario == RUN
    shutil.rmtree(recording.directory)
    with pytest.raises(LookupError, match=r"no recording 'latest' \(recordings: none yet\)"):
        find("latest", tmp_path)


def test_it_is_counted_by_nobody(tmp_path: Path) -> None:
    recording = finished(tmp_path)
    (tmp_path / ".latest.0123456789abcdef").symlink_to(RUN)  # of a run that was killed just then
    assert [each.directory for each in archive.recordings(tmp_path)] == [recording.directory]
    with pytest.raises(LookupError, match=rf"no recording 'other' \(recordings: {RUN}\)"):
        find("other", tmp_path)


def make_link_to(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


@pytest.mark.parametrize(
    "make",
    [Path.mkdir, Path.touch, make_link_to("/dev/null"), make_link_to("mine"), make_link_to(f"../old/{RUN}")],
)
def test_what_somebody_else_made_stays(make: Callable[[Path], None], tmp_path: Path) -> None:
    link = tmp_path / "latest"
    make(link)
    before = link.lstat()
    recording = finished(tmp_path)
    after = link.lstat()
    for field in ("st_ino", "st_mode", "st_mtime_ns", "st_ctime_ns"):  # when somebody looked at it may differ
        assert getattr(after, field) == getattr(before, field)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [RUN, "latest"]
    assert is_recording(recording.directory)


def test_many_at_once_leave_one_whole_link(tmp_path: Path) -> None:
    runs = [tmp_path / f"20220310T1200{number:02}Z-contmec-pod" for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(directory.point_latest_to, runs))
    assert [entry.name for entry in tmp_path.iterdir()] == ["latest"]
    assert tmp_path / (tmp_path / "latest").readlink() in runs


def test_where_no_link_can_be_made_the_recording_is_complete_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "symlink_to", fail)
    assert finished(tmp_path).run_id == RUN
