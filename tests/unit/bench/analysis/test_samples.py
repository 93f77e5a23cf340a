from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.analysis import samples
from bench.generators import Record
from bench.recording.atomic import StoredError
from bench.recording.directory import Recording

Recorded = Callable[[str], Recording]


def read(recording: Recording) -> samples.Readings:
    return samples.read(recording, recording.scenario(), recording.run_record())


def test_the_table_of_a_real_recording(recorded: Recorded) -> None:
    recording = recorded("held")
    readings = read(recording)
    table = readings.samples
    assert [fault.text for fault in readings.faults] == []
    assert list(table.columns) == list(samples.COLUMNS)
    assert {name: str(kind) for name, kind in table.dtypes.items()} == samples.COLUMNS
    assert set(table["source"]) == {"receiver", "sender"}
    assert set(table["repetition"]) == {0, 1}
    roles = dict(zip(table["flow"], table["role"], strict=True))
    assert roles == {
        "(1) A-1 -> A-4": "guaranteed",
        "(2) A-2 -> A-3": "guaranteed",
        "disturbance": "disturbance",
    }
    received = table[(table["flow"] == "(1) A-1 -> A-4") & (table["source"] == "receiver")]
    # Four seconds of 100 ms, twice; the rest iperf3 reports at its end is no sample.
    assert len(received) == 80


def test_times_are_on_the_runs_clock(recorded: Recorded) -> None:
    recording = recorded("held")
    transfer = recording.run_record().repetitions[0].transfers["disturbance"]
    table = read(recording).samples
    first = table[(table["flow"] == "disturbance") & (table["repetition"] == 0)].iloc[0]
    assert first["start_s"] == pytest.approx(transfer.started_s)
    assert transfer.started_s > 2
    record = recording.run_record()
    record.repetitions[0].transfers["disturbance"].started_s = 2.12345678
    moved = samples.read(recording, recording.scenario(), record).samples
    begun = moved[(moved["flow"] == "disturbance") & (moved["repetition"] == 0)].iloc[0]
    assert begun["start_s"] == 2.123457  # microseconds, as generators tell them
    assert begun["end_s"] - begun["start_s"] == pytest.approx(0.1, abs=0.05)


def test_bytes_are_conserved(recorded: Recorded) -> None:
    recording = recorded("held")
    readings = read(recording)
    raw = json.loads(recording.raw_file(0, "disturbance", "receiver").read_text())
    assert readings.totals[0, "disturbance", "receiver"] == raw["end"]["sum_received"]["bytes"]


def test_a_failed_transfer_is_a_fault_and_never_a_zero(recorded: Recorded) -> None:
    recording = recorded("violated")
    recording.raw_file(0, "disturbance", "receiver").write_text('{"error": "unable to connect to server"}')
    readings = read(recording)
    assert [fault.text for fault in readings.faults] == [
        "disturbance, repetition-0: raw/repetition-0/disturbance.receiver.json: "
        "iperf3: unable to connect to server"
    ]
    lost = readings.samples[readings.samples["flow"] == "disturbance"]
    assert set(lost["source"]) == {"sender"}


def test_errors_of_the_record_are_faults(recorded: Recorded) -> None:
    recording = recorded("violated")
    record = recording.run_record()
    record.repetitions[0].transfers["disturbance"].error = "sender: the server is busy"
    del record.repetitions[0].transfers["(1) A-1 -> A-4"]
    readings = samples.read(recording, recording.scenario(), record)
    assert {fault.kind for fault in readings.faults} == {"measurement"}
    assert [fault.flow for fault in readings.faults] == ["(1) A-1 -> A-4", "disturbance"]
    assert [fault.text for fault in readings.faults] == [
        "(1) A-1 -> A-4, repetition-0: the transfer was not made",
        "disturbance, repetition-0: sender: the server is busy",
    ]
    assert set(readings.samples["flow"]) == {"(2) A-2 -> A-3"}


def test_nothing_at_all_is_an_empty_table_of_the_same_form(recorded: Recorded) -> None:
    recording = recorded("violated")
    record = recording.run_record()
    record.repetitions[0].transfers.clear()
    table = samples.read(recording, recording.scenario(), record).samples
    assert table.empty
    assert {name: str(kind) for name, kind in table.dtypes.items()} == samples.COLUMNS


def test_samples_from_before_exchanges_were_timed_are_read(recorded: Recorded, tmp_path: Path) -> None:
    table = read(recorded("held")).samples
    table.drop(columns="exchange_s").to_parquet(tmp_path / "samples.parquet")
    pd.testing.assert_frame_equal(samples.table(tmp_path / "samples.parquet"), table)
    table.drop(columns="window_bps").to_parquet(tmp_path / "samples.parquet")
    with pytest.raises(StoredError, match="not a table of samples"):
        samples.table(tmp_path / "samples.parquet")


@given(
    ends=st.lists(st.floats(min_value=0.001, max_value=0.3), min_size=1, max_size=60),
    interval=st.sampled_from([0.1, 0.2]),
)
def test_samples_are_whole_and_within_the_transfer(ends: list[float], interval: float) -> None:
    records, now = [], 0.0
    for length in ends:
        records.append(Record(now, now + length, 1, 8 / length))
        now += length
    kept = samples.whole(records, interval, duration_s=2.0)
    assert [record for record in records if record in kept] == kept
    for record in kept:
        assert record.end_s - record.start_s >= interval / 2
        assert record.start_s < 2.0
    for record in records:
        if record.end_s <= 2.0 and record.end_s - record.start_s >= interval:
            assert record in kept
