from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

from bench.analysis import ceilings, flow_phases, latency, summary, verdict
from bench.analysis.samples import parted
from bench.observations.causes import Cause
from bench.presentation import tables
from bench.presentation.commands import Following
from bench.recording.directory import Recording
from bench.recording.records import RunRecord, Stall
from testbed.scenario import Scenario
from tests.paths import ROOT
from tests.unit.bench.builders import exchanges, record, samples, scenario


def shown(rate: float, faults: Sequence[Cause] = (), **fields: object) -> str:
    experiment = scenario(**fields)
    return told(experiment, record(experiment), samples(experiment, lambda _f, _t: rate), faults)


def told(
    experiment: Scenario,
    made: RunRecord,
    table: pd.DataFrame,
    faults: Sequence[Cause] = (),
    capped: bool = False,
) -> str:
    recording = Recording(Path("reports/run"))
    observed = flow_phases.observe(parted(table), experiment, made)
    exceeded = list(ceilings.causes(parted(table), experiment, made)) if capped else []
    judged = verdict.judge(experiment, made, observed, faults, exceeded=exceeded)
    stream = io.StringIO()
    result = summary.build(experiment, made, observed, judged)
    tables.show(Console(file=stream, width=80), result, recording)
    return stream.getvalue()


def test_a_plain_stream_of_80_columns_shows_everything() -> None:
    lines = shown(1.5e8).splitlines()
    table = lines[: next(i for i, line in enumerate(lines) if line.startswith("violated: "))]
    assert all(len(line) <= 80 for line in table)
    assert not any("\x1b" in line for line in lines)
    words = [line.split() for line in table]
    assert ["A", "->", "C", "100.000", "95.492", "quiet", "150.000", "150.000", "100.0", "%", "held"] in words
    assert ["disturbed", "✗", "150.000", "150.000", "✗", "0.0", "%", "MISSED"] in words
    assert ["noise", "–", "–", "disturbed", "150.000", "150.000", "–"] in words


def test_the_conclusion_has_reasons_and_places() -> None:
    text = shown(1.5e8)
    assert "violated: small" in text
    assert "  - B -> D, quiet: the mean of 150 Mbit/s is 78.54 % of the expected 191 Mbit/s" in text
    assert "recording: reports/run\n" in text
    assert "report:    reports/run/report.html" in text


def test_a_row_shows_the_repetition_that_missed() -> None:
    experiment = scenario(measurement={"repetitions": 3}, disturbances=[])
    table = samples(experiment, lambda _f, _t: 2e8)
    of_a = table["flow"] == "A -> C"
    table.loc[of_a, "bits_per_second"] = 1e8
    table.loc[of_a & (table["repetition"] == 1), "bits_per_second"] = 9e7
    rows = [line.split() for line in told(experiment, record(experiment), table).splitlines()]
    assert ["quiet,", "rep.", "1", "✗", "90.000", "90.000", "100.0", "%", "MISSED"] in [
        row[-9:] for row in rows
    ]
    assert ["quiet", "200.000", "200.000", "100.0", "%", "held"] in [row[-6:] for row in rows]


def row(text: str, *begins: str) -> list[str]:
    rows = [line.split() for line in text.splitlines()]
    return next(words for words in rows if words[: len(begins)] == list(begins))


FLOW = ("A", "->", "C", "100.000", "95.492", "quiet")


def test_the_mean_is_marked_if_it_is_too_low() -> None:
    experiment = scenario(disturbances=[])
    text = told(experiment, record(experiment), samples(experiment, lambda _f, _t: 9e7))
    assert row(text, *FLOW)[6:] == ["✗", "90.000", "90.000", "100.0", "%", "MISSED"]


def test_the_share_is_marked_and_neither_the_mean_that_passes_nor_p01_which_never_decides() -> None:
    experiment = scenario(disturbances=[], measurement={"repetitions": 2})
    table = samples(experiment, lambda _f, time: 5e7 if time % 1 < 0.05 else 1e8)
    text = told(experiment, record(experiment), table)
    shown = row(text, *FLOW[:-1])[5:]
    assert shown[:3] == ["quiet,", "rep.", "0"]
    assert shown[3:] == ["95.263", "50.000", "✗", "90.5", "%", "MISSED"]


def test_the_mean_is_marked_if_a_ceiling_is_exceeded() -> None:
    experiment = scenario(disturbances=[])
    rates = {"A -> C": 5e8, "B -> D": 1.9e8}
    table = samples(experiment, lambda flow, _t: rates[flow])
    text = told(experiment, record(experiment), table, capped=True)
    assert row(text, *FLOW)[6:] == ["✗", "500.000", "500.000", "100.0", "%", "OVER"]
    assert row(text, "B", "->", "D")[-1] == "held"
    assert "violated: small" in text


def test_low_samples_are_explained_and_few_have_a_minimum() -> None:
    experiment = scenario(disturbances=[])
    low = {("A -> C", 4.0), ("A -> C", 5.0), ("B -> D", 4.0)}
    table = samples(experiment, lambda flow, time: 1e6 if (flow, time) in low else 2e8)
    made = record(experiment)
    made.repetitions[0].stalls = [Stall(start_s=4.01, end_s=4.05)]
    text = told(experiment, made, table)
    assert "A -> C, quiet: 2 of 95 low, and the machine accounts for 1 of them\n" in text
    assert "B -> D, quiet: 1 of 95 low, and the machine accounts for it\n" in text
    assert " min attained" in " ".join(text.splitlines()[1].split())
    assert "1.000" in text


def test_many_samples_have_a_percentile() -> None:
    text = shown(2e8, measurement={"repetitions": 2}, disturbances=[])
    assert " p01 attained" in " ".join(text.splitlines()[1].split())


def test_names_are_not_markup() -> None:
    flows = [{"name": "[red]x[/red]", "from": "A", "to": "C"}]
    assert "[red]x[/red]" in shown(1e8, flows=flows, title="[b]bold[/b]")
    assert "[b]bold[/b]" in shown(1e8, flows=flows, title="[b]bold[/b]")


def test_what_iperf3_says_is_no_order_to_the_terminal() -> None:
    text = shown(1e8, faults=[Cause(kind="measurement", text="x: iperf3: \x1b[2J\x9b")])
    assert "  - x: iperf3: \\x1b[2J\\x9b\n" in text


def test_the_terminal_does_not_wait_for_pandas() -> None:
    code = (
        "import sys, bench.presentation.tables; print({'pandas', 'matplotlib', 'numpy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_how_well_it_is_known_is_said_below_the_table() -> None:
    lines = shown(1.5e8).splitlines()
    assert "95 % intervals within this run: means ± 0 % of what is expected, or less" in lines
    assert "largest effect of a disturbance: 0 % (0 to 0 %), A -> C" in lines
    assert "  note: one repetition: nothing is known from run to run" in lines
    lines = shown(1.5e8, measurement={"repetitions": 5}).splitlines()
    assert "95 % intervals over the repetitions: means ± 0 % of what is expected, or less" in lines
    assert not any("nothing is known" in line for line in lines)


@pytest.mark.parametrize(
    ("took", "decides"),
    [(0.02, ["✗", "20", "20", "20", "0", "0"]), (None, ["✗", "1"])],
)
def test_of_requests_p99_or_the_lost_are_marked(took: float | None, decides: list[str]) -> None:
    of = scenario(
        disturbances=[],
        requests=[{"name": "r", "from": "A", "to": "C", "rate": 20, "latency": 0.005, "lost": 0}],
    )
    made = record(of)
    found = exchanges(of, lambda _r, due: took if took or abs(due - 5) < 0.01 else 0.001)
    latencies = latency.observe(found, of, made)
    judged = verdict.judge(of, made, [], [], latencies)
    told = summary.build(of, made, [], judged, (), summary.requests_of(of, latencies, {}))
    stream = io.StringIO()
    Console(file=stream, width=80).print(tables.requests(told))
    shown = row(stream.getvalue(), "r")
    assert shown[-1] == "MISSED"
    assert shown[-len(decides) - 1 : -1] == decides
    assert shown.count("✗") == 1


def test_the_last_line_is_a_command_and_the_one_before_says_what_it_finds_out() -> None:
    stream = io.StringIO()
    experiment = scenario()
    made = record(experiment)
    found = summary.build(experiment, made, [], verdict.judge(experiment, made, [], []))
    step = Following("./invokew bench --scenario " + 80 * "x", "whether [it] holds")
    tables.show(Console(file=stream, width=80), found, Recording(Path("reports/run")), "", step)
    assert stream.getvalue().splitlines()[-2:] == [
        "to find out: whether [it] holds",
        f"next: {step.command}",
    ]
