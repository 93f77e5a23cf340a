"""Comparing recordings as they lie on the disk: no privileges, no traffic."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bench import pipeline
from bench.console.documents import Document
from bench.console.statuses import HELD, INVALID, VIOLATED
from bench.recording import archive
from bench.recording.atomic import StoredError
from bench.recording.directory import Recording
from bench.studies.compare import sides
from bench.studies.compare import verb as verb
from bench.studies.compare.verb import compare
from tests.paths import ROOT

REFERENCE = ROOT / "reports" / "reference"
ONE = "machines-contmec"  # of one repetition
DRAWN = verb._drawn
MEANS = [1.0, 1.0005, 0.9995, 1.0]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    reports = tmp_path_factory.mktemp("unpacked")
    directory = archive.unpack(REFERENCE / ONE, reports)
    pipeline.analyse(Recording(directory))
    return directory


@pytest.fixture
def recorded(unpacked: Path, tmp_path: Path) -> Callable[..., Path]:
    """Return a function that leaves a recording whose summary tells of repetitions with these means."""

    def leave(name: str, less: float = 0.0, machine: str = "x86_64") -> Path:
        place = Path(shutil.copytree(unpacked, tmp_path / name))
        summary = json.loads((unpacked / "summary.json").read_text())
        for flow in summary["flows"]:
            for phase in flow["phases"].values():
                (only,) = phase["repetitions"]
                mean = only["mean_bps"] - (less * only["mean_bps"] if flow["name"].startswith("(2)") else 0)
                phase["repetitions"] = [{**only, "mean_bps": mean * share} for share in MEANS]
        (place / "summary.json").write_text(json.dumps(summary))
        environment = json.loads((place / "environment.json").read_text())
        environment["host"]["machine"] = machine
        (place / "environment.json").write_text(json.dumps(environment))
        return place

    return leave


@pytest.fixture(autouse=True)
def _undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes most of a comparison's time."""
    monkeypatch.setattr(verb, "_drawn", lambda *_: {})


def test_the_status_is_that_of_the_worst_flow(
    recorded: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded("before")
    recorded("after", less=0.03)
    assert compare("before", "before", False, {}, tmp_path) == HELD
    assert compare("before", "after", False, {}, tmp_path) == VIOLATED
    assert compare("after", "before", False, {}, tmp_path) == HELD  # it is better
    text = capsys.readouterr().out
    assert "-3.00" in text
    assert "worse" in text
    *lines, last = text.splitlines()
    assert all(len(line.rstrip()) <= 80 for line in lines if not line.startswith("next: "))
    assert last == f"next: ./invokew figures {tmp_path / 'before'} --reports {tmp_path}"

    document: Document = {}
    compare("before", "after", False, document, tmp_path)
    assert (document["finding"], document["alone"]) == ("worse", [])
    assert document["next"]["command"] == f"./invokew figures {tmp_path / 'after'} --reports {tmp_path}"
    (comparison,) = document["comparisons"]
    worse = {(row["flow"], row["phase"]) for row in comparison["rows"] if row["finding"] == "worse"}
    assert worse == {("(2) A-2 -> A-3", "quiet"), ("(2) A-2 -> A-3", "disturbed")}


def test_both_are_drawn_in_one_figure(
    recorded: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded("before")
    recorded("after")
    monkeypatch.setattr(verb, "_drawn", DRAWN)
    document: Document = {}
    size = {"preset": "column", "format": "svg"}
    assert compare("before", "after", False, document, tmp_path, size) == HELD
    (figure,) = document["figures"]
    assert Path(figure).name == "comparison-column.svg"
    assert Path(figure).is_relative_to(tmp_path / "compared")
    drawn = Path(figure).read_text()
    assert ">B compared with A: same</text>" in drawn
    assert ">(2) A-2 → A-3</text>" in drawn
    with pytest.raises(LookupError, match="--format: must be one or more of"):
        compare("before", "after", False, {}, tmp_path, {"format": "gif"})


def test_another_machine(recorded: Callable[..., Path], tmp_path: Path) -> None:
    recorded("here")
    recorded("there", machine="aarch64")
    assert compare("here", "there", False, {}, tmp_path) == INVALID
    assert compare("here", "there", True, {}, tmp_path) == HELD


def test_packed_recordings(tmp_path: Path) -> None:
    document: Document = {}
    one = REFERENCE / ONE
    assert compare(str(one), str(one / archive.PACKED), False, document, tmp_path) == INVALID
    (comparison,) = document["comparisons"]
    assert comparison["runs"][0] == comparison["runs"][1] != ""
    assert {row["reason"] for row in comparison["rows"]} == {"fewer than 3 repetitions"}


@pytest.mark.long(one_in=0)
def test_directories_of_packed_recordings(tmp_path: Path) -> None:
    document: Document = {}
    bundle = tmp_path / "bundle" / "reports" / "reference"
    for name in (ONE, "matrix"):
        shutil.copytree(REFERENCE / name, bundle / name)
    assert compare(str(tmp_path / "bundle"), str(tmp_path / "bundle"), False, document, tmp_path) == INVALID
    names = [comparison["name"] for comparison in document["comparisons"]]
    assert names[0] == f"reports/reference/{ONE}"
    assert "reports/reference/matrix/congested, node" in names
    assert len(names) == 8


def test_what_only_one_of_two_directories_has_cannot_be_told(
    recorded: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("old/one", "old/two", "new/one"):
        recorded(name)
    document: Document = {}
    assert compare("old", "new", False, document, tmp_path) == INVALID
    assert [comparison["finding"] for comparison in document["comparisons"]] == ["same"]
    assert document["alone"] == ["two"]
    recorded("other/three")
    with pytest.raises(LookupError, match="no recording of the same name"):
        compare("old", "other", False, {}, tmp_path)


def test_what_is_not_finished_is_refused(recorded: Callable[..., Path], tmp_path: Path) -> None:
    recorded("whole")
    begun = recorded("begun.unfinished")
    for name in ("begun", "begun.unfinished"):
        with pytest.raises(LookupError, match=r"begun.unfinished is not finished; go on with it first"):
            compare("whole", name, False, {}, tmp_path)
    shutil.move(begun, tmp_path / "cut")
    (tmp_path / "cut" / "raw" / "run.json").unlink()
    with pytest.raises(LookupError, match="cut is not finished"):
        compare("cut", "whole", False, {}, tmp_path)


def test_other_bad_input_names_the_file(recorded: Callable[..., Path], tmp_path: Path) -> None:
    recorded("whole")
    half = recorded("half")
    run = half / "raw" / "run.json"
    run.write_text(run.read_text()[:100])
    with pytest.raises(StoredError, match=r"raw/run\.json"):
        compare("whole", "half", False, {}, tmp_path)
    (recorded("bare") / "summary.json").unlink()
    with pytest.raises(StoredError, match=r"summary.json: there is none; make it: ./invokew figures"):
        compare("whole", "bare", False, {}, tmp_path)
    with pytest.raises(LookupError, match="no recording 'nothing'"):
        compare("whole", "nothing", False, {}, tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(LookupError, match="empty: there is no recording"):
        compare("whole", "empty", False, {}, tmp_path)


def test_a_machine_is_known_by_what_boots_do_not_change() -> None:
    host = {
        "machine": "x86_64",
        "processors": ["EPYC", "EPYC"],
        "processors_usable": 2,
        "kernel": "6.18.44-x",
        "memory_bytes": 25276514304,
        "load_average": [1.0],
    }
    known = sides.machine({"host": host})
    assert known == {
        "architecture": "x86_64",
        "processors": 2,
        "processor models": "EPYC",
        "memory in GiB": 24,
        "kernel": "6.18",
    }
    assert sides.machine({"host": {**host, "kernel": "6.18.50", "load_average": [9.0]}}) == known
    assert sides.machine({"host": "not readable"}) == sides.machine([]) == {}
