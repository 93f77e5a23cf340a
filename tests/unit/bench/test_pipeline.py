from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable

import pandas as pd
import pytest

from bench import pipeline
from bench.analysis import summary
from bench.analysis.samples import COLUMNS
from bench.recording.atomic import StoredError
from bench.recording.directory import Recording
from testbed.scenario import ScenarioError
from tests.paths import ROOT

Recorded = Callable[[str], Recording]
ONCE = "raw/analysis.json"
OUTPUTS = {
    "samples.parquet",
    "summary.json",
    "report.html",
    "ro-crate-metadata.json",
    "figures/throughput.svg",
    "figures/throughput.pdf",
    "figures/throughput.png",
}


def files(recording: Recording) -> dict[str, str]:
    return {
        str(file.relative_to(recording.directory)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in recording.directory.rglob("*")
        if file.is_file()
    }


@pytest.mark.parametrize(("name", "outcome"), [("held", "held"), ("violated", "violated"), ("udp", "held")])
@pytest.mark.long(one_in=2)
def test_real_recordings(recorded: Recorded, name: str, outcome: str) -> None:
    recording = recorded(name)
    before = files(recording)
    result = pipeline.analyse(recording)
    assert result.verdict == outcome
    after = files(recording)
    assert after.keys() - before.keys() == OUTPUTS | {ONCE}
    assert {file: after[file] for file in before} == before
    assert summary.render(summary.read(recording.summary_file)) == summary.render(result)
    assert list(pd.read_parquet(recording.samples_file).columns) == list(COLUMNS)


@pytest.mark.long(one_in=0)
def test_again_in_another_process_gives_the_same_bytes(recorded: Recorded) -> None:
    recording = recorded("held")
    pipeline.analyse(recording)
    before = files(recording)
    for output in OUTPUTS:
        (recording.directory / output).unlink()
    code = "import sys; from pathlib import Path; from bench.pipeline import analyse\n"
    code += "from bench.recording.directory import Recording; analyse(Recording(Path(sys.argv[1])))"
    subprocess.run([sys.executable, "-c", code, str(recording.directory)], cwd=ROOT, check=True)
    assert files(recording) == before


@pytest.mark.long(one_in=0)
def test_the_name_of_an_unfinished_recording_is_nowhere_in_what_is_made_of_it(recorded: Recorded) -> None:
    finished = recorded("violated")
    unfinished = Recording(finished.directory.rename(finished.directory.with_name("violated.unfinished")))
    pipeline.analyse(unfinished)
    before = files(unfinished)
    finished = unfinished.finish()
    pipeline.analyse(finished)
    assert files(finished) == before


@pytest.mark.usefixtures("undrawn")
def test_raw_output_that_is_broken_makes_an_invalid_run(recorded: Recorded) -> None:
    recording = recorded("held")
    recording.raw_file(1, "1-a-1-a-4", "receiver").write_text("")
    result = pipeline.analyse(recording)
    assert result.verdict == "invalid"
    lost = [cause for cause in result.causes if cause.kind == "measurement"]
    assert {(cause.flow, cause.repetition) for cause in lost} == {("(1) A-1 -> A-4", 1)}
    assert "raw/repetition-1/1-a-1-a-4.receiver.json: the file is empty" in lost[0].text


def test_nothing_but_faults_is_still_reported(recorded: Recorded) -> None:
    recording = recorded("violated")
    for file in recording.directory.glob("raw/*/*.json"):
        file.write_text('{"error": "unable to connect to server: Connection refused"}')
    result = pipeline.analyse(recording)
    assert result.verdict == "invalid"
    assert all(flow.phases == {} for flow in result.flows)
    assert "Connection refused" in recording.report_file.read_text(encoding="utf-8")


def test_what_was_run_must_be_readable(recorded: Recorded) -> None:
    recording = recorded("violated")
    recording.run_file.write_text("{}")
    with pytest.raises(StoredError, match=r"raw/run.json: run_id: this field is required"):
        pipeline.analyse(recording)
    recording.scenario_file.unlink()
    with pytest.raises(ScenarioError):
        pipeline.analyse(recording)


@pytest.mark.usefixtures("undrawn")
def test_summary_is_plain_json(recorded: Recorded) -> None:
    recording = recorded("held")
    pipeline.analyse(recording)
    assert json.loads(recording.summary_file.read_text())["schema"] == 1
