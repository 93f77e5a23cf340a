"""The documentation's generator from outside the project: what it reads, and what of it counts where."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from bench.analysis import samples, verdict
from bench.generators import RawDataError, guaranteed
from bench.observations import counters
from bench.observations.observation import Evidence
from bench.recording.directory import Recording
from docs.examples.exchange_generator import Exchange
from testbed.scenario import ScenarioError, load, render_yaml
from tests.paths import ROOT
from tests.unit.bench.builders import record, scenario

CONTMEC = ROOT / "scenarios" / "contmec.yaml"
LINES = (
    {"start": 0.0, "end": 0.1, "bytes": 640, "exchange_s": 0.0002},
    {"start": 0.1, "end": 0.2, "bytes": 0},
    {"start": 0.2, "end": 0.30004, "bytes": 1280, "exchange_s": 0.0004},
)


def written(file: Path, *lines: Mapping[str, object]) -> Path:
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return file


def test_its_output_is_read_into_records(tmp_path: Path) -> None:
    records = Exchange().read_records(written(tmp_path / "out", *LINES))
    assert [one.exchange_s for one in records] == [0.0002, None, 0.0004]
    assert [one.bytes for one in records] == [640, 0, 1280]
    assert records[0].bits_per_second == pytest.approx(51_200)
    assert records[2].end_s == 0.30004


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no exchange was reported"),
        ('{"start": 0.0, "en', "not a report of exchanges"),
        ('{"start": 0.0}', "not a report of exchanges"),
        ('{"start": 0.1, "end": 0.1, "bytes": 1}', "not a report of exchanges"),
        (json.dumps(LINES[0]) + '\n{"error": "the other end has gone"}', "the other end has gone"),
    ],
)
def test_what_holds_no_measurement_says_why(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "out").write_text(text)
    (tmp_path / "err").write_text("\n")  # as a command that was held back leaves it
    with pytest.raises(RawDataError, match=words):
        Exchange().read_records(tmp_path / "out")
    assert words in str(Exchange().complaint(tmp_path / "out", tmp_path / "err"))


def test_what_python_says_of_its_end_comes_first(tmp_path: Path) -> None:
    (tmp_path / "err").write_text("\nTraceback ...\nMemoryError\n")
    assert Exchange().complaint(tmp_path / "none", tmp_path / "err") == "MemoryError"
    assert Exchange().complaint(written(tmp_path / "out", *LINES), tmp_path / "err") is None


def test_what_it_cannot_do_is_a_fault_of_the_scenario() -> None:
    asked = ["generator=exchange", "parallel=2", "protocol=udp", "rate=1G"]
    with pytest.raises(ScenarioError) as caught:
        load(CONTMEC, [f"flows[1].{field}" for field in asked])
    assert [line.split(": ")[1] for line in str(caught.value).splitlines()] == [
        "flows[1].protocol", "flows[1].parallel", "flows[1].rate",
    ]  # fmt: skip
    assert "generator 'exchange': there is one exchange at a time" in str(caught.value)


def test_its_times_are_samples(recorded: Callable[[str], Recording]) -> None:
    recording = recorded("held")
    old = recording.scenario()
    disturbance = old.disturbances[0].model_copy(update={"generator": "exchange", "rate": None})
    new = old.model_copy(update={"disturbances": [disturbance]})
    recording.scenario_file.write_text(render_yaml(new))
    for number in (0, 1):
        for side in samples.SIDES:
            written(recording.raw_file(number, "disturbance", side, "jsonl"), *LINES)
            recording.raw_file(number, "disturbance", side).unlink()
    readings = samples.read(recording, recording.scenario(), recording.run_record())
    assert readings.faults == []
    exchanges = readings.samples["flow"] == "disturbance"
    times = readings.samples["exchange_s"]
    assert times[exchanges].dropna().unique().tolist() == [0.0002, 0.0004]
    assert times[exchanges].isna().sum() == 4  # an interval of each of four files
    assert times[~exchanges].isna().all()


def test_no_guarantee_is_held_against_exchanges() -> None:
    exchange = {"from": "A", "to": "C", "generator": "exchange"}
    mixed = scenario(flows=[exchange, {"from": "B", "to": "D"}])
    assert [flow.label for flow in guaranteed(mixed)] == ["B -> D"]
    assert samples.role_of(mixed, mixed.flows[0]) == "unguaranteed"
    # They would contradict each other, and fall short, if they were iperf3's.
    totals = {(0, "A -> C", "receiver"): 1000, (0, "A -> C", "sender"): 10}
    assert list(counters.contradictions(Evidence(mixed, record(mixed), totals))) == []
    alone = scenario(flows=[exchange], disturbances=[])
    judged = verdict.judge(alone, record(alone), [], [])
    assert judged.outcome == "invalid"
    assert [cause.kind for cause in judged.causes] == ["measurement"]
