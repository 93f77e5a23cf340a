from __future__ import annotations

import base64
import zlib

import numpy as np
import pandas as pd

from bench.presentation import chart
from tests.paths import ROOT
from tests.unit.bench.builders import record, samples, scenario
from tests.unit.bench.presentation import pages

SCRIPTS = ROOT / "bench" / "presentation" / "templates"


def unpacked(packed: str) -> np.ndarray:
    """Return the columns as the page's script puts them together again."""
    planes = np.frombuffer(zlib.decompress(base64.b64decode(packed)), dtype=np.uint8)
    return planes.reshape(3, 4, -1).transpose(0, 2, 1).copy().view("<u4")[:, :, 0].astype(np.int64)


def signed(values: np.ndarray) -> np.ndarray:
    return (values >> 1) ^ -(values & 1)


def table(starts: list[float], ends: list[float], rates: list[float]) -> pd.DataFrame:
    return pd.DataFrame({"start_s": starts, "end_s": ends, "bits_per_second": rates})


def test_every_sample_is_packed_to_the_microsecond_and_to_six_digits() -> None:
    starts, ends = [0.013, 0.1135, 0.4, 0.5], [0.1135, 0.2129, 0.5, 0.600001]
    rates = [4e11, 9.5512345678e8, 0.25, 99_999_999.9]
    pauses, lengths, steps = unpacked(chart.pack([table(starts, ends, rates)], 0.1))
    now = 13_000
    for index, (pause, length) in enumerate(zip(signed(pauses), signed(lengths), strict=True)):
        now += int(pause)
        assert now == round(starts[index] * 1e6)
        now += 100_000 + int(length)
        assert now == round(ends[index] * 1e6)
    kept = [(step & 0xFFFFF) * 10.0 ** chart.POWERS[step >> 20] for step in steps.tolist()]
    assert [f"{rate:.6g}" for rate in kept] == [f"{rate:.6g}" for rate in rates]


def test_what_has_no_samples_is_packed_too() -> None:
    assert unpacked(chart.pack([], 0.1)).shape == (3, 0)
    nothing = chart.pack([table([0.0], [0.1], [0.0])], 0.1)
    assert unpacked(nothing).tolist() == [[0], [0], [0]]


def test_what_is_promised_has_a_panel_of_its_own() -> None:
    of = scenario()
    result = pages.summarised(of, samples(of, lambda _flow, _time: 1e8))
    data = chart.data(samples(of, lambda _flow, _time: 1e8), of, record(of), result)
    assert [panel["flows"] for panel in data["panels"]] == [[0, 1], [2]]
    assert [panel["unit"] for panel in data["panels"]] == ["Mbit/s", "Mbit/s"]
    assert data["repetitions"][0]["disturbances"] == [(3.0, 6.0)]
    assert data["repetitions"][0]["phases"][0] == [(3.0, 6.0, "disturbed")]
    assert sum(transfer["count"] for transfer in data["transfers"]) == 100 + 100 + 30


def test_stalls_and_saturated_processors_are_marked() -> None:
    of = pages.large(flows=1, seconds=10)
    marks = chart.data(
        pages.samples(of),
        of,
        record(of, repetitions=[pages.watched(of)]),
        pages.summarised(of, pages.samples(of)),
    )["repetitions"][0]
    assert marks["stalls"] == [(2.0, 2.043)]
    assert marks["saturated"] == [(4.5, 5.0)]


def test_the_library_is_the_one_that_was_tried() -> None:
    library = chart.library()
    assert "uPlot (v1.6.31)" in library["script"][:100]
    assert len(library["script"]) < 60_000
    assert ".u-over" in library["style"]
    assert "</script" not in library["script"]


def test_the_script_around_it_stays_small() -> None:
    lines = (SCRIPTS / "chart.js").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 300
    assert max(map(len, lines)) <= 120
