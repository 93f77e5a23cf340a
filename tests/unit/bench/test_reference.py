"""The committed reference recordings: what anyone can make again from their packed files."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from bench.analysis.summary import Summary
from bench.cli.verbs import experiments
from bench.console.statuses import HELD, INVALID
from bench.pipeline import analyse
from bench.recording import archive, atomic
from bench.recording.archive import without_names
from bench.recording.directory import Recording
from bench.studies.backends import index as backends
from bench.studies.devices import index as devices
from bench.studies.matrix import index
from bench.studies.places import index as places
from bench.studies.reproduction import claims
from bench.studies.services import index as services
from bench.studies.study import read_index
from tests.paths import CONTMEC_SUMMARY, ROOT

REFERENCE = ROOT / "reports" / "reference"
RUNS = sorted(place.name for place in REFERENCE.iterdir() if archive.is_run(place))
CELLS = sorted(
    f"{table.parent.name}/{row['run_id']}"
    for table in REFERENCE.glob(f"*/{archive.TABLE}")
    for row in atomic.read_json(table)
    if table.parent.name not in RUNS
)


def outcome(result: Summary) -> dict[str, Any]:
    """Return all that a summary says but how long its making took."""
    return result.model_dump(exclude={"seconds": {"analysis"}})


def committed(run: str, run_id: str) -> dict[str, str]:
    """Return what the table of packed recordings says of one."""
    place = REFERENCE / run
    table = (place if run in RUNS else place.parent) / archive.TABLE
    (row,) = (row for row in atomic.read_json(table) if row["run_id"] == run_id)
    return dict(row)


def again(run: str, reports: Path) -> tuple[Summary, dict[str, str]]:
    """Return what a recording shows now, and what the table would say of it."""
    recording = Recording(archive.unpack(REFERENCE / run, reports))
    shown = analyse(recording)
    (row,) = json.loads(archive.table([recording.summary_file.read_bytes()]))
    return shown, row


def test_there_are_the_recordings_that_claims_and_pages_need() -> None:
    known = claims.read()
    needed = {claim.recording for claim in known.claims} | {one.recording for one in known.shown}
    needed -= known.missing.keys()
    assert needed == {directory.name for directory in REFERENCE.iterdir()}
    rows = {
        f"{matrix}/{cell.recording}"
        for matrix in ("matrix", "latency", "incast")
        for cell in read_index(REFERENCE / matrix / index.INDEX, index.Matrix).rows
        if cell.recording
    }
    studies = ("places", places), ("backends", backends), ("services", services), ("devices", devices)
    for name, study in studies:
        rows |= {f"{name}/{row.recording}" for row in study.read(REFERENCE / name).rows if row.recording}
    assert rows == set(CELLS)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.long(one_in=5)
def test_a_reference_recording_gives_the_same_again(run: str, tmp_path: Path) -> None:
    result, row = again(run, tmp_path)
    assert result.verdict == ("violated" if run == "tenth-full-link" else "held")
    assert row == committed(run, result.run_id)


@pytest.mark.long(one_in=0)
def test_a_reference_recording_packed_again_is_the_same(tmp_path: Path) -> None:
    kept = REFERENCE / "contmec"
    unpacked = archive.unpack(kept, tmp_path)
    said = json.loads(CONTMEC_SUMMARY.read_text(encoding="utf-8"))
    (unpacked / "summary.json").write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
    packed = archive.pack(unpacked, tmp_path / "to")
    # How well it is compressed is liblzma's, and may differ between its versions.
    assert lzma.decompress(packed.read_bytes()) == lzma.decompress((kept / archive.PACKED).read_bytes())
    assert (packed.parent / archive.TABLE).read_bytes() == (kept / archive.TABLE).read_bytes()


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.long(one_in=48)
def test_a_case_of_a_reference_study_gives_the_same_again(cell: str, tmp_path: Path) -> None:
    result, row = again(cell, tmp_path)
    assert row == committed(cell, result.run_id)


@pytest.mark.long(one_in=0)
def test_the_reference_matrix_gives_the_same_again(tmp_path: Path) -> None:
    status = experiments.draw_figures(str(REFERENCE / "matrix"), tmp_path, {})
    made, summaries = index.read(tmp_path / "matrix")
    # In one of its runs the processors may have been the limit.
    assert status == (INVALID if "invalid" in {of.verdict for of in summaries.values()} else HELD)
    assert made == read_index(REFERENCE / "matrix" / index.INDEX, index.Matrix)
    assert {(of.run_id, of.verdict) for of in summaries.values()} == {
        (row["run_id"], row["verdict"]) for row in atomic.read_json(REFERENCE / "matrix" / archive.TABLE)
    }
    for file in ("matrix.html", "figures/matrix.svg"):
        assert (tmp_path / "matrix" / file).stat().st_size > 1000


def test_on_the_reference_matrix_full_link_only_node_keeps_the_promise() -> None:
    matrix = read_index(REFERENCE / "matrix" / index.INDEX, index.Matrix)
    verdicts = {
        row["run_id"]: row["verdict"] for row in atomic.read_json(REFERENCE / "matrix" / archive.TABLE)
    }
    full_link = {name: verdicts[matrix.case("congested", name).recording] for name in index.ENFORCEMENTS}
    assert full_link == {"none": "violated", "bandwidth": "violated", "pod": "violated", "node": "held"}


@pytest.mark.parametrize("run", [*RUNS, *CELLS])
@pytest.mark.long(one_in=23)
def test_no_reference_recording_names_a_machine_or_a_person(run: str, tmp_path: Path) -> None:
    directory = archive.unpack(REFERENCE / run, tmp_path)
    files = [file for file in directory.rglob("*") if file.is_file()]
    assert len(files) > 10
    for file in files:
        path, content = str(file.relative_to(directory)), file.read_bytes()
        assert without_names(path, content) == content, path
        for word in (b"/home/", b"/root/", b"/tmp/"):
            assert word not in content, path
