from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.generators import RawDataError
from bench.generators.iperf3 import Iperf3
from bench.recording.records import slugs
from testbed.scenario import load
from tests.unit.bench.builders import DATA

REAL = DATA / "held" / "raw" / "repetition-0" / "1-a-1-a-4.receiver.json"
PARALLEL = DATA / "udp" / "raw" / "repetition-0" / "a-2-a-3.receiver.json"

read_records = Iperf3().read_records


def written(directory: Path, text: str) -> Path:
    file = directory / "raw.json"
    file.write_text(text, encoding="utf-8")
    return file


def stream(**fields: Any) -> dict[str, Any]:
    return {"start": 0, "end": 0.1, "seconds": 0.1, "bytes": 1000, "omitted": False, **fields}


def test_real_output_gives_every_record_and_all_its_bytes() -> None:
    records = read_records(REAL)
    total = json.loads(REAL.read_text())["end"]["sum_received"]
    assert sum(record.bytes for record in records) == total["bytes"]
    assert records[0].start_s == 0
    assert records[-1].end_s == pytest.approx(total["seconds"])


def test_parallel_streams_are_summed() -> None:
    raw = json.loads(PARALLEL.read_text())["intervals"]
    records = read_records(PARALLEL)
    assert len(raw[0]["streams"]) == 2
    assert [record.bytes for record in records] == [interval["sum"]["bytes"] for interval in raw]
    assert [record.bits_per_second for record in records] == pytest.approx(
        [interval["sum"]["bits_per_second"] for interval in raw], rel=1e-3
    )


def test_the_rate_comes_from_bytes_and_seconds_not_from_the_nominal_interval(tmp_path: Path) -> None:
    # esnet/iperf#951: twenty blocks of 128 KiB in an interval of 34.7 ms
    interval = {"streams": [stream(end=0.0347, seconds=0.0347, bytes=2_621_440)]}
    (record,) = read_records(written(tmp_path, json.dumps({"intervals": [interval]})))
    assert record.bits_per_second == pytest.approx(2_621_440 * 8 / 0.0347)


@pytest.mark.parametrize(
    ("fields", "window"),
    [
        ([{"retransmits": 0, "snd_cwnd": 1000, "rtt": 8}], 1e9),
        (
            [{"retransmits": 0, "snd_cwnd": 1000, "rtt": 8}, {"retransmits": 0, "snd_cwnd": 1, "rtt": 8}],
            1.001e9,
        ),
        ([{"retransmits": 1, "snd_cwnd": 1000, "rtt": 8}], None),  # it had lost something
        ([{"retransmits": 0, "snd_cwnd": 1000, "rtt": 0}], None),  # no TCP_INFO
        ([{}], None),  # a receiver
    ],
)
def test_a_window_is_what_it_would_carry_in_a_second(
    tmp_path: Path, fields: list[dict[str, int]], window: float | None
) -> None:
    text = json.dumps({"intervals": [{"streams": [stream(**each) for each in fields]}]})
    assert read_records(written(tmp_path, text))[0].window_bps == (window and pytest.approx(window))


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        ([{"rtt": 350}], 0.00035),
        ([{"rtt": 350}, {"rtt": 450}], 0.0004),
        ([{"rtt": 350}, {"rtt": 0}], None),  # no TCP_INFO of one stream
        ([{}], None),  # a receiver
    ],
)
def test_a_round_trip_is_the_mean_of_the_streams(
    tmp_path: Path, fields: list[dict[str, int]], seconds: float | None
) -> None:
    text = json.dumps({"intervals": [{"streams": [stream(**each) for each in fields]}]})
    assert read_records(written(tmp_path, text))[0].round_trip_s == (seconds and pytest.approx(seconds))


def test_output_printed_twice_counts_once(tmp_path: Path) -> None:
    text = REAL.read_text()
    assert read_records(written(tmp_path, f"{text}\n{text}")) == read_records(REAL)


def test_omitted_intervals_are_no_records(tmp_path: Path) -> None:
    intervals = [{"streams": [stream(omitted=True)]}, {"streams": [stream(bytes=7)]}]
    assert [r.bytes for r in read_records(written(tmp_path, json.dumps({"intervals": intervals})))] == [7]


def test_a_stall_is_a_measurement_of_nothing(tmp_path: Path) -> None:
    (record,) = read_records(written(tmp_path, json.dumps({"intervals": [{"streams": [stream(bytes=0)]}]})))
    assert record.bits_per_second == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the file is empty"),
        (" \n", "the file is empty"),
        (REAL.read_text()[:500], "not complete JSON"),
        ("iperf3: error - unable to connect", "it begins 'iperf3: error - unable to connect'"),
        ("[1, 2]", "not iperf3 output"),
        ('{"start": {}, "error": "the server is busy"}', "iperf3: the server is busy"),
        ('{"intervals": [], "end": {}}', "without a single interval"),
        ('{"end": {}}', "not iperf3 output as known: KeyError 'intervals'"),
        ('{"intervals": [{"streams": []}]}', "not iperf3 output as known"),
        ('{"intervals": [{"streams": [{"start": "x"}]}]}', "not iperf3 output as known"),
        ('{"intervals": 3}', "not iperf3 output as known"),
    ],
)
def test_what_is_no_measurement_is_said_in_words(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(RawDataError) as caught:
        read_records(written(tmp_path, text))
    assert words in str(caught.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(RawDataError, match="No such file"):
        read_records(tmp_path / "none.json")


@pytest.mark.parametrize("number", ["-nan", "nan", "inf", "-inf", "-Infinity"])
def test_a_number_that_is_none_and_that_nobody_needs_loses_nothing(number: str, tmp_path: Path) -> None:
    # esnet/iperf#278: of no packets, the share that was lost
    text = json.dumps({"intervals": [{"streams": [stream(lost_percent=-7)]}], "end": {}})
    (record,) = read_records(written(tmp_path, text.replace("-7", number)))
    assert record.bytes == 1000


def test_a_number_that_is_none_and_is_needed_is_no_measurement(tmp_path: Path) -> None:
    text = json.dumps({"intervals": [{"streams": [stream(seconds=-7)]}]})
    with pytest.raises(RawDataError, match="not iperf3 output as known"):
        read_records(written(tmp_path, text.replace("-7", "-nan")))


def test_words_in_an_error_stay_words(tmp_path: Path) -> None:
    file = written(tmp_path, '{"x": -nan, "error": "unable to connect: nan, inf"}')
    with pytest.raises(RawDataError, match="unable to connect: "):
        read_records(file)


@pytest.mark.parametrize("name", ["held", "udp", "violated"])
def test_what_iperf3_wrote_is_within_what_it_was_taken_to_write_at_most(name: str) -> None:
    scenario = load(DATA / name / "scenario.yaml")
    directory = DATA / name / "raw" / "repetition-0"
    tool, names = Iperf3(), slugs(one.label for one in scenario.traffic)
    for traffic in scenario.traffic:
        base = names[traffic.label]
        most = tool.most_bytes(traffic, scenario.measurement.interval)
        sizes = [file.stat().st_size for file in directory.glob(f"{base}.*.json")]
        assert sizes, base
        assert most / 4 < max(sizes) < most
