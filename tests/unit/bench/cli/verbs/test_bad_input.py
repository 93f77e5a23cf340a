"""Recordings and studies that are not as they were left: status 2, the path, what to do, and nothing written.

Where what is left still says what was run, it is analysed, and the run is invalid: status 3.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from invoke.exceptions import Exit

from bench.cli import exits
from bench.cli.verbs import experiments
from bench.console import asked, statuses
from bench.pipeline import analyse
from bench.recording import atomic, directory
from bench.recording.directory import UNFINISHED, Recording
from bench.recording.records import Beginning, Finished, StudyRequest
from bench.studies import verb
from bench.studies.matrix import index
from bench.studies.matrix.index import Matrix, MatrixCase
from testbed.scenario.addressing import Found
from tests import verbs
from tests.paths import ROOT
from tests.unit.bench.builders import DATA

pytestmark = pytest.mark.usefixtures("undrawn")

Damage = Callable[[Path], None]
OPTIONS = asked.Options(set_=[], scale=1.0, provider="netns", orchestrator="cni", reports="reports")


def half(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def made_into(text: str) -> Damage:
    def make(file: Path) -> None:
        file.write_text(text)

    return make


def not_utf8(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[:9] + b"\xff" + content[9:])


def directory_instead(file: Path) -> None:
    file.unlink()
    file.mkdir()


def gone(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def field(name: str, value: object) -> Damage:
    return lambda file: atomic.write_json(file, {**atomic.read_json(file), name: value})


def another_version(samples: Path) -> None:
    pd.read_parquet(samples).rename(columns={"source": "side"}).to_parquet(samples)


def other_types(samples: Path) -> None:
    pd.read_parquet(samples).assign(bits_per_second="fast").to_parquet(samples)


def contents(directory: Path) -> dict[str, tuple[int, bytes]]:
    """Return every file of a directory, with when it was changed."""
    files = (path for path in directory.rglob("*") if stat.S_ISREG(path.lstat().st_mode))
    return {str(file): (file.stat().st_mtime_ns, file.read_bytes()) for file in files}


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    """A recording as a run leaves it today."""
    made = Recording(Path(shutil.copytree(DATA / "held", tmp_path / "held")))
    record = made.run_record()
    beginning = Beginning(started_at=record.started_at, provider="netns", orchestrator="cni")
    atomic.write_model(made.beginning_file, beginning)
    for number, repetition in enumerate(record.repetitions):
        done = Finished(repetition=repetition, seconds=1, calibration=None, faults=[], notes=[])
        atomic.write_model(made.finished_file(number), done)
    atomic.write_model(made.found_file, Found(uplinks={"worker-01": "ens5"}))
    record.files = directory.digests(made)
    atomic.write_model(made.run_file, record)
    return made


@pytest.fixture
def matrix(recording: Recording) -> Path:
    """A matrix of one case that was run and one that does not apply."""
    directory = recording.directory.with_name("20260101T000000Z-matrix")
    analyse(recording)
    shutil.move(recording.directory, directory / "case")
    cells = [
        MatrixCase(scenario="contmec", enforcement="pod", recording="case"),
        MatrixCase(scenario="contmec", enforcement="node", recording=None, reason="no rate"),
    ]
    atomic.write_model(directory / index.INDEX, Matrix(rows=cells))
    atomic.write_model(directory / "request.json", StudyRequest(study="matrix"))
    return directory


def ended(capsys: pytest.CaptureFixture[str], command: Callable[..., int], *args: Any) -> tuple[int, str]:
    """Return the status that a command ends with, and what it complains of. A bug is raised."""
    capsys.readouterr()
    with pytest.raises(Exit) as end:
        exits.must(command, *args)
    said = capsys.readouterr()
    return end.value.code, said.err + said.out


AGAIN = "run its scenario again: ./invokew bench --scenario {}"
RESTORE = "restore it: nothing else says what was run"

REFUSED: list[tuple[str, Damage, str, str]] = [
    ("raw/run.json", half, "Invalid JSON: EOF while parsing", AGAIN),
    ("raw/run.json", empty, "Invalid JSON: EOF while parsing", AGAIN),
    ("raw/run.json", made_into("[]"), "input should be an object", AGAIN),
    ("raw/run.json", field("repetitions", "two"), "repetitions: input should be a valid array", AGAIN),
    ("raw/run.json", field("seconds", {"up": "1"}), "seconds.up: input should be a valid number", AGAIN),
    ("raw/run.json", field("schema_version", 2), "schema_version: input should be 1", AGAIN),
    ("raw/run.json", not_utf8, "not UTF-8 text: invalid start byte at byte 9", AGAIN),
    ("raw/run.json", directory_instead, "not a file, but a directory", AGAIN),
    ("raw/run.json", gone, "No such file or directory", AGAIN),
    ("raw", gone, "No such file or directory", AGAIN),
    ("raw/found.json", half, "Invalid JSON", AGAIN),
    ("scenario.yaml", gone, "No such file or directory", RESTORE),
    ("scenario.yaml", empty, "not a scenario", RESTORE),
    ("scenario.yaml", half, "", RESTORE),
    ("scenario.yaml", not_utf8, "not UTF-8 text: invalid start byte at byte 9", RESTORE),
    ("scenario.yaml", directory_instead, "not a file, but a directory", RESTORE),
]


@pytest.mark.parametrize(("path", "damage", "words", "remedy"), REFUSED)
def test_a_recording_that_says_no_more_what_was_run_is_refused(
    path: str,
    damage: Damage,
    words: str,
    remedy: str,
    recording: Recording,
    capsys: pytest.CaptureFixture[str],
) -> None:
    damage(recording.directory / path)
    before = contents(recording.directory)
    status, said = ended(capsys, experiments.draw_figures, str(recording.directory), Path("reports"), {})
    assert status == statuses.BAD_INPUT
    named = path if path != "raw" else "raw/run.json"
    assert said.startswith(f"{recording.directory / named}: {words}")
    assert said.endswith(remedy.format(recording.directory) + "\n")
    assert contents(recording.directory) == before


@pytest.mark.parametrize(
    ("path", "damage"),
    [
        ("environment.json", half),
        ("environment.json", empty),
        ("environment.json", not_utf8),
        ("environment.json", directory_instead),
        ("environment.json", gone),
        ("environment.json", field("mtu", "\ud800")),
        ("raw/repetition-0", gone),
        ("raw/repetition-1/finished.json", half),
        ("raw/repetition-0/1-a-1-a-4.receiver.json", half),
        ("raw/beginning.json", gone),
    ],
)
def test_a_recording_that_lacks_something_else_is_invalid(
    path: str, damage: Damage, recording: Recording, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(recording.directory / path)
    before = contents(recording.directory)
    status, said = ended(capsys, experiments.draw_figures, str(recording.directory), Path("reports"), {})
    assert status == statuses.INVALID
    assert path in said
    after = contents(recording.directory)
    assert {file: after[file] for file in before} == before


@pytest.mark.parametrize(
    ("path", "remedy"),
    [
        ("scenario.yaml", RESTORE),
        ("raw/beginning.json", AGAIN),
        ("raw/repetition-0/finished.json", "remove it, and its repetition is made again"),
    ],
)
@pytest.mark.parametrize("damage", [half, empty, not_utf8, directory_instead])
def test_nothing_is_gone_on_with_that_cannot_be_read(
    path: str, remedy: str, damage: Damage, recording: Recording, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = recording.directory.rename(f"{recording.directory}{UNFINISHED}")
    damage(directory / path)
    before = contents(directory)

    def resume() -> int:
        return experiments.bench([], [], str(directory), {}, **OPTIONS)

    status, said = ended(capsys, resume)
    assert status == statuses.BAD_INPUT
    assert said.startswith(f"{directory / path}: ")
    assert said.endswith(remedy.format(directory) + "\n")
    assert contents(directory) == before


CASES = "restore it: nothing else says which recording is which case"
CASE_AGAIN = "again: ./invokew figures {}/case"

STUDIES: list[tuple[str, Damage, str, str]] = [
    ("matrix.json", half, "Invalid JSON", CASES),
    ("matrix.json", empty, "Invalid JSON", CASES),
    ("matrix.json", not_utf8, "not UTF-8 text", CASES),
    ("matrix.json", field("cells", {}), "cells: input should be a valid array", CASES),
    ("case/summary.json", half, "Invalid JSON", CASE_AGAIN),
    ("case/summary.json", field("schema", 2), "schema: input should be 1", CASE_AGAIN),
    ("case/samples.parquet", another_version, "not a table of samples: without source", CASE_AGAIN),
    ("case/samples.parquet", other_types, "not a table of samples: ", CASE_AGAIN),
    ("case/samples.parquet", half, "not a table of samples: ", CASE_AGAIN),
    ("case/samples.parquet", empty, "not a table of samples: ", CASE_AGAIN),
    ("case/samples.parquet", directory_instead, "not a file, but a directory", CASE_AGAIN),
    ("case/scenario.yaml", gone, "No such file", RESTORE),
    ("request.json", half, "Invalid JSON", "without it the study can be shown, but not resumed"),
    ("case", gone, "No such file", CASE_AGAIN),
]


@pytest.mark.long(one_in=9)
@pytest.mark.parametrize(("path", "damage", "words", "remedy"), STUDIES)
def test_a_study_of_what_cannot_be_read_is_refused(
    path: str, damage: Damage, words: str, remedy: str, matrix: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(matrix / path)
    before = contents(matrix)
    status, said = ended(capsys, experiments.draw_figures, str(matrix), Path("reports"), {})
    assert status == statuses.BAD_INPUT
    assert said.startswith(f"{matrix / path}{'/summary.json' if path == 'case' else ''}: {words}")
    assert said.endswith(remedy.format(matrix) + "\n")
    assert contents(matrix) == before


@pytest.mark.long(one_in=3)
@pytest.mark.parametrize(
    ("path", "remedy"),
    [("request.json", "restore it, or begin anew: ./invokew matrix"), ("matrix.json", CASES)],
)
@pytest.mark.parametrize("damage", [half, empty, not_utf8])
def test_no_study_is_gone_on_with_that_cannot_be_read(
    path: str, remedy: str, damage: Damage, matrix: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = matrix.rename(f"{matrix}{UNFINISHED}")
    damage(directory / path)
    before = contents(directory)

    def resume() -> int:
        return verb.run("matrix", {}, str(directory), document={}, **OPTIONS)

    status, said = ended(capsys, resume)
    assert status == statuses.BAD_INPUT
    assert said.startswith(f"{directory / path}: ")
    assert said.endswith(f"{remedy}\n")
    assert contents(directory) == before


@pytest.mark.parametrize("words", ["0", "", "-1", "1.5", "many", "٣", "9" * 5000])
def test_what_is_no_number_of_repetitions_is_refused(words: str) -> None:
    with pytest.raises(LookupError, match="--repetitions: must be a positive integer, not "):
        asked.overrides("", words)
    assert asked.overrides("node", "03") == ["enforcement=node", "measurement.repetitions=3"]
    assert asked.overrides("", None) == []


# Root may read everything, unless it has given that up.
AS_OTHERS = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []


@pytest.mark.parametrize("path", ["raw/run.json", "raw"])
def test_what_may_not_be_read_is_named(path: str, recording: Recording) -> None:
    before = contents(recording.directory)
    (recording.directory / path).chmod(0)
    done = subprocess.run(
        [*AS_OTHERS, sys.executable, "tasks.py", "figures", str(recording.directory), "--json"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    (recording.directory / path).chmod(0o700)
    assert (done.returncode, done.stdout) == (statuses.BAD_INPUT, "")
    assert done.stderr.startswith(f"{recording.run_file}: Permission denied\n")
    assert contents(recording.directory) == before


def test_nothing_is_written_for_no_repetitions(tmp_path: Path) -> None:
    done = verbs.run("bench", "--repetitions", "0", "--reports", str(tmp_path / "reports"))
    assert done.returncode == statuses.BAD_INPUT
    assert done.stderr == "--repetitions: must be a positive integer, not '0'\n"
    assert list(tmp_path.iterdir()) == []
