"""What other people's programs are told of recordings and studies."""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from bench import pipeline
from bench.recording import archive
from bench.recording.directory import Recording
from bench.studies.reproduction import bundle, regeneration
from tests.paths import ROOT

REFERENCE = ROOT / "reports" / "reference"
REQUIREMENTS = ROOT / "requirements" / "crate.txt"


def entities(file: Path) -> dict[str, Any]:
    return {entity["@id"]: entity for entity in json.loads(file.read_text(encoding="utf-8"))["@graph"]}


def test_a_recording_says_what_its_files_are_and_what_made_them(recorded: Callable[[str], Recording]) -> None:
    recording = recorded("held")
    pipeline.analyse(recording)
    found = entities(recording.crate_file)
    files = {path for path, entity in found.items() if entity["@type"] == "File"}
    there = {
        file.relative_to(recording.directory).as_posix()
        for file in recording.directory.rglob("*")
        if file.is_file() and file != recording.crate_file
    }
    assert files == there
    run, analysis = (found[one["@id"]] for one in found["./"]["mentions"])
    record = recording.run_record()
    seconds = record.seconds.up + record.seconds.calibration + record.seconds.traffic + record.seconds.down
    assert run["startTime"] == record.started_at
    assert run["object"] == [{"@id": "scenario.yaml"}]
    assert {"@id": "raw/run.json"} in run["result"]
    for made in ("summary.json", "raw/analysis.json"):
        assert {"@id": made} in analysis["result"]
        assert {"@id": made} not in [*run["result"], *analysis["object"]]
    assert analysis["endTime"] == found["./"]["datePublished"]
    took = datetime.fromisoformat(run["endTime"]) - datetime.fromisoformat(run["startTime"])
    assert took.total_seconds() == pytest.approx(seconds, abs=1e-5)
    assert found[run["instrument"]["@id"]]["softwareVersion"].startswith("commit ")
    assert found["ro-crate-metadata.json"]["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.1"}


@pytest.mark.long(one_in=0)
def test_a_study_says_it_of_each_of_its_recordings(tmp_path: Path) -> None:
    held = archive.unpack(REFERENCE / "contmec", tmp_path / "20260101T000000Z-matrix")
    index = {"cells": [{"scenario": "contmec", "enforcement": "pod", "recording": held.name}]}
    (held.parent / "matrix.json").write_text(json.dumps(index))
    made = regeneration.make(held.parent, tmp_path / "20260101T000000Z-matrix")
    found = {one["@id"]: one for one in json.loads(made.files["ro-crate-metadata.json"])["@graph"]}
    assert found["./"]["name"] == "20260101T000000Z-matrix"
    assert len(found["./"]["mentions"]) == 2
    parts = {part["@id"] for part in found["./"]["hasPart"]}
    assert {"matrix.json", "matrix.html", "figures/matrix.svg", f"{held.name}/raw/run.json"} <= parts


@pytest.fixture(scope="session")
def checking() -> Path:
    """Return the Python that checks metadata, in an environment of its own."""
    environment = ROOT / ".venv" / "crate"
    python, stamp = environment / "bin" / "python", environment / "crate.txt"
    with (ROOT / ".venv" / "crate.lock").open("w") as lock:  # tests run side by side
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_bytes() == REQUIREMENTS.read_bytes():
            return python
        shutil.rmtree(environment, ignore_errors=True)
        commands: list[list[str | Path]] = [
            [sys.executable, "-m", "venv", environment],
            [python, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", REQUIREMENTS],
        ]
        for command in commands:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"what checks metadata cannot be installed: {done.stderr.strip()[-300:]}")
        shutil.copyfile(REQUIREMENTS, stamp)
    return python


def validated(python: Path, crate: Path) -> subprocess.CompletedProcess[str]:
    """Validate a crate where there is no network, if that can be had."""
    offline = ["unshare", "--user", "--map-root-user", "--net"]
    apart = subprocess.run([*offline, "true"], capture_output=True, check=False).returncode == 0
    command: Sequence[str | Path] = [
        *(offline if apart else []),
        *(python, ROOT / "tests" / "validate_crate.py", crate.parent / "cache", crate),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.long(one_in=0)
@pytest.mark.parametrize("name", ["contmec", "matrix"])
def test_a_crate_is_one_by_the_rules_of_its_profile(name: str, checking: Path, tmp_path: Path) -> None:
    made = regeneration.make(REFERENCE / name, tmp_path)
    crate = tmp_path / "crate"
    for path, content in made.files.items():
        file = crate / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    whole = archive.unpack(REFERENCE / name, tmp_path / "whole")
    shutil.copytree(whole, crate, dirs_exist_ok=True)
    done = validated(checking, crate)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "47 checks" in done.stdout
    # The check can fail: a run without what it was made with is none.
    metadata = crate / "ro-crate-metadata.json"
    metadata.write_text(metadata.read_text(encoding="utf-8").replace('"instrument"', '"description"'))
    done = validated(checking, crate)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "instrument" in done.stdout


@pytest.mark.long(one_in=0)
def test_so_is_that_of_a_bundle(checking: Path, tmp_path: Path) -> None:
    file = tmp_path / "bundle.tar.xz"
    file.write_bytes(bundle.render("0" * 40, bundle.source(ROOT).members))
    subprocess.run(["tar", "-xf", file], cwd=tmp_path, check=True)
    (crate,) = tmp_path.glob("concorde-testbed-*")
    done = validated(checking, crate)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "47 checks" in done.stdout


@pytest.mark.long(one_in=0)
def test_the_citation_is_one_by_the_rules_of_its_format(checking: Path) -> None:
    command: list[str | Path] = [
        *(checking.with_name("cffconvert"), "--validate", "--infile", ROOT / "CITATION.cff")
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
