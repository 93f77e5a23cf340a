from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.analysis import exchanges, flow_phases, summary, verdict
from bench.analysis.samples import parted
from bench.presentation.figures import throughput
from bench.presentation.figures.sheet import PAGE, PRESETS, Sheet, Subject
from bench.presentation.figures.style import COLOURS, DISTURBANCE, STALL
from bench.recording.records import Stall
from testbed.scenario import Scenario
from tests.paths import ROOT
from tests.unit.bench.builders import DATA, Rate, record, repetition, samples, scenario
from tests.unit.bench.presentation.figures import looked_at
from tests.unit.bench.presentation.figures.looked_at import drawn

SVG = Sheet(formats=("svg",))
DIGESTS = """
import hashlib, sys
from pathlib import Path
from bench.analysis import exchanges, flow_phases, samples, summary, verdict
from bench.presentation.figures import sheet, throughput
from bench.presentation.figures.sheet import Subject
from bench.recording.directory import Recording
recording = Recording(Path(sys.argv[1]))
scenario, record = recording.scenario(), recording.run_record()
table = samples.read(recording, scenario, record).samples
observed = flow_phases.observe(samples.parted(table), scenario, record)
judged = verdict.judge(scenario, record, observed, [])
result = summary.build(scenario, record, observed, judged)
subject = Subject(scenario, record, result, table, exchanges.joined([]))
for of in (sheet.PAGE, sheet.PRESETS["column"]):
    for kind, content in throughput.render(subject, of).items():
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


@pytest.mark.long(one_in=0)
def test_bytes_are_the_same_in_any_process_whatever_its_surroundings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    style = tmp_path / "matplotlibrc"
    style.write_text(
        "figure.dpi: 33\nsavefig.dpi: 44\nfont.family: serif\nfont.size: 20\naxes.facecolor: pink\n"
        "lines.linewidth: 9\nsvg.fonttype: none\nsavefig.bbox: tight\ntext.usetex: True\nbackend: pdf\n"
        "axes.formatter.use_locale: True\npdf.compression: 0\n"
    )
    monkeypatch.setattr(sys, "argv", ["-c", str(DATA / "held")])
    exec(DIGESTS, {})  # in this process, which has drawn other figures
    plain = capsys.readouterr().out
    assert [line.split()[0] for line in plain.splitlines()] == ["svg", "pdf", "png"] * 2
    assert plain == digests(
        MATPLOTLIBRC=str(style),
        SOURCE_DATE_EPOCH="86400",
        TZ="Asia/Tokyo",
        PYTHONHASHSEED="7",
        LC_ALL="C",
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


def subject(experiment: Scenario, rate: Rate = lambda _f, _t: 1e8, **fields: Any) -> Subject:
    """A run in which the flows got as much; ``fields`` are of its record."""
    made = record(experiment, **fields)
    table = samples(experiment, rate) if made.repetitions else samples(experiment, rate).iloc[:0]
    observed = flow_phases.observe(parted(table), experiment, made)
    result = summary.build(experiment, made, observed, verdict.judge(experiment, made, observed, []))
    return Subject(experiment, made, result, table, exchanges.joined([]))


def rendered(experiment: Scenario, rate: float = 1e8) -> dict[str, bytes]:
    return throughput.render(subject(experiment, lambda _f, _t: rate), PAGE)


@pytest.mark.parametrize("count", [1, 20])
@pytest.mark.long(one_in=2)
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
    assert throughput.render(subject(scenario(), repetitions=[]), PAGE)["png"]


def burst(flow: str, time: float) -> float:
    """What begins with eight times as much as is kept up."""
    return 8e8 if time < 0.2 and flow != "noise" else 1e8


@pytest.mark.parametrize("sheet", [PAGE, *PRESETS.values(), Sheet("own", 3.5, 6.0)], ids=lambda one: one.name)
@pytest.mark.parametrize("count", [1, 30])
@pytest.mark.long(one_in=4)
def test_all_text_is_as_large_as_asked_and_nothing_leaves(sheet: Sheet, count: int) -> None:
    with drawn(lambda: throughput.draw(subject(many(count), burst), sheet), sheet) as figure:
        assert figure.get_figwidth() == sheet.width
        assert looked_at.small(figure, sheet) == []
        assert looked_at.outside(figure) == []
        assert looked_at.beyond_axes(figure) == []
        assert looked_at.covered(figure) == []


def test_what_is_cut_off_is_marked_with_its_rate() -> None:
    with drawn(lambda: throughput.draw(subject(scenario(), burst), PAGE), PAGE) as figure:
        assert "800 Mbit/s" in looked_at.texts(figure)


def test_a_slide_is_not_taller_than_its_screen() -> None:
    slide = PRESETS["slide"]
    with drawn(lambda: throughput.draw(subject(scenario()), slide), slide) as figure:
        assert figure.get_figheight() <= (slide.tallest or 0) + 1e-9


@pytest.mark.parametrize("names", [("noise",), ("noise", "more noise")])
def test_a_disturbance_has_its_colour_in_any_scenario(names: tuple[str, ...]) -> None:
    others = [
        {"name": name, "from": "one", "to": "two", "start": 2 + 3 * place, "duration": 2}
        for place, name in enumerate(names)
    ]
    for experiment in (scenario(disturbances=others), scenario(flows=[{"from": "A", "to": "C"}])):
        panel = throughput.render(subject(experiment), SVG)["svg"].decode().partition('id="axes_2"')[2]
        assert f"stroke: {DISTURBANCE.lower()}" in panel
        assert not any(f"stroke: {colour.lower()}" in panel for colour in COLOURS)


def test_a_verdict_other_than_held_and_the_machines_bad_moments_are_in_the_file() -> None:
    experiment = scenario()
    done = repetition(experiment).model_copy(update={"stalls": [Stall(start_s=2.0, end_s=2.04)]})
    drawn = throughput.render(subject(experiment, repetitions=[done]), SVG)["svg"].decode()
    assert ">violated: B → D</text>" in drawn
    assert ">machine stood still</text>" in drawn
    assert drawn.count(f"fill: {STALL}") == 2 * 2 + 1  # down, and at the top, of two panels; and in the key
    calm = throughput.render(subject(experiment, lambda f, _t: 2e8 if f == "B -> D" else 1e8), SVG)["svg"]
    assert b"held" not in calm
    assert STALL.encode() not in calm


def test_the_machine_is_named_if_it_may_have_been_the_limit() -> None:
    experiment = scenario()
    busy = subject(experiment, repetitions=[repetition(experiment, busy=1.0)])
    drawn = throughput.render(busy, replace(PRESETS["column"], formats=("svg",)))["svg"].decode()
    assert ">invalid: the machine may have been the limit</text>" in drawn
    assert ">processor saturated</text>" in drawn


def test_a_smaller_scale_is_named() -> None:
    made = replace(subject(scenario(), lambda f, _t: 2e8 if f == "B -> D" else 1e8), scale=0.5)
    assert ">at half of every rate</text>" in throughput.render(made, SVG)["svg"].decode()
