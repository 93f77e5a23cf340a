from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.analysis import observations, summarising, verdict
from bench.presentation.figures import throughput
from bench.presentation.figures.style import COLOURS
from testbed.scenario import Scenario
from tests.paths import ROOT
from tests.unit.bench.builders import DATA, record, samples, scenario

DIGESTS = """
import hashlib, sys
from pathlib import Path
from bench.analysis import observations, samples, summarising, verdict
from bench.presentation.figures import throughput
from bench.recording.directory import Recording
recording = Recording(Path(sys.argv[1]))
scenario, record = recording.scenario(), recording.run_record()
table = samples.read(recording, scenario, record).samples
observed = observations.observe(table, scenario, record)
judged = verdict.judge(scenario, record, observed, [])
result = summarising.build(scenario, record, observed, judged)
for kind, content in throughput.render(table, scenario, result).items():
    print(kind, hashlib.sha256(content).hexdigest())
"""


def digests(**environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", DIGESTS, str(DATA / "held")],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_bytes_are_the_same_in_any_process_whatever_its_surroundings(tmp_path: Path) -> None:
    style = tmp_path / "matplotlibrc"
    style.write_text(
        "figure.dpi: 33\nsavefig.dpi: 44\nfont.family: serif\nfont.size: 20\naxes.facecolor: pink\n"
        "lines.linewidth: 9\nsvg.fonttype: none\nsavefig.bbox: tight\ntext.usetex: True\nbackend: pdf\n"
        "axes.formatter.use_locale: True\npdf.compression: 0\n"
    )
    plain = digests()
    assert [line.split()[0] for line in plain.splitlines()] == ["svg", "pdf", "png"]
    assert plain == digests(
        MATPLOTLIBRC=str(style), SOURCE_DATE_EPOCH="86400", TZ="Asia/Tokyo", PYTHONHASHSEED="7", LC_ALL="C"
    )


def many(count: int) -> Scenario:
    """As many flows, some without a guarantee, some with names that mean something to others."""
    pods: dict[str, dict[str, str]] = {}
    flows: list[dict[str, object]] = []
    for number in range(count):
        guarantee = {} if number % 4 == 3 else {"guarantee": f"{100 * (1 + number // 2)}M"}
        pods[f"S-{number}"] = {"cluster": "a", "node": "left", **guarantee}
        pods[f"D-{number}"] = {"cluster": "a", "node": "right"}
        flow: dict[str, object] = {"from": f"S-{number}", "to": f"D-{number}"}
        flows.append(
            flow if number % 2 else {**flow, "name": f"$\\frac{{{number}}} <b>&--> {'long ' * 6}{number}"}
        )
    return scenario(pods=pods, flows=flows, disturbances=[], containers={})


def rendered(experiment: Scenario, rate: float = 1e8) -> dict[str, bytes]:
    made = record(experiment)
    table = samples(experiment, lambda _f, _t: rate)
    observed = observations.observe(table, experiment, made)
    result = summarising.build(experiment, made, observed, verdict.judge(experiment, made, observed, []))
    return throughput.render(table, experiment, result)


@pytest.mark.parametrize("count", [1, 20])
def test_any_number_of_flows(count: int) -> None:
    files = rendered(many(count))
    assert files["svg"].startswith(b"<?xml")
    assert files["pdf"].startswith(b"%PDF")
    assert files["png"].startswith(b"\x89PNG")


def test_no_dates_and_no_foreign_addresses_in_the_files() -> None:
    files = rendered(scenario())
    assert b"CreationDate" not in files["pdf"]
    assert b"dc:date" not in files["svg"]
    assert b"matplotlib.org" not in files["svg"]


def test_text_is_text_and_what_is_measured_lies_above_what_is_expected() -> None:
    drawn = rendered(scenario())["svg"].decode()
    assert ">throughput in Mbit/s</text>" in drawn
    panel = drawn.partition('id="axes_1"')[2].partition('id="axes_2"')[0]
    assert panel.rindex("stroke-dasharray") < panel.index(f"stroke: {COLOURS[0].lower()}")


def test_a_flow_that_got_nothing_can_be_drawn() -> None:
    assert rendered(scenario(), rate=0.0)["svg"]


def test_no_samples_can_be_drawn() -> None:
    experiment = scenario()
    made = record(experiment, repetitions=[])
    table = samples(experiment, lambda _f, _t: 0.0).iloc[:0]
    result = summarising.build(experiment, made, [], verdict.judge(experiment, made, [], []))
    assert throughput.render(table, experiment, result)["png"]
