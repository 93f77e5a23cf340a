from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from bench.analysis import observations, summary, verdict
from bench.presentation import tables
from bench.recording.directory import Recording
from tests.paths import ROOT
from tests.unit.bench.builders import record, samples, scenario


def shown(rate: float, faults: Sequence[str] = (), **fields: object) -> str:
    experiment = scenario(**fields)
    made = record(experiment)
    recording = Recording(Path("reports/run"))
    observed = observations.observe(samples(experiment, lambda _f, _t: rate), experiment, made)
    judged = verdict.judge(experiment, made, observed, faults)
    stream = io.StringIO()
    result = summary.build(recording, experiment, made, observed, judged)
    tables.show(Console(file=stream, width=80), result, recording)
    return stream.getvalue()


def test_a_plain_stream_of_80_columns_shows_everything() -> None:
    lines = shown(1.5e8).splitlines()
    table = lines[: next(i for i, line in enumerate(lines) if line.startswith("violated: "))]
    assert all(len(line) <= 80 for line in table)
    assert not any("\x1b" in line for line in lines)
    words = [line.split() for line in table]
    assert ["A", "->", "C", "100.000", "95.492", "quiet", "150.000", "150.000", "100.0", "%", "held"] in words
    assert ["disturbed", "150.000", "150.000", "0.0", "%", "MISSED"] in words
    assert ["noise", "–", "–", "disturbed", "150.000", "150.000", "–"] in words


def test_the_conclusion_has_reasons_and_places() -> None:
    text = shown(1.5e8)
    assert "violated: small" in text
    assert "  - B -> D, quiet: the mean of 150 Mbit/s is 78.54 % of the expected 191 Mbit/s" in text
    assert "recording: reports/run\n" in text
    assert "report:    reports/run/report.html" in text


def test_names_are_not_markup() -> None:
    flows = [{"name": "[red]x[/red]", "from": "A", "to": "C"}]
    assert "[red]x[/red]" in shown(1e8, flows=flows, title="[b]bold[/b]")
    assert "[b]bold[/b]" in shown(1e8, flows=flows, title="[b]bold[/b]")


def test_what_iperf3_says_is_no_order_to_the_terminal() -> None:
    text = shown(1e8, faults=["x: iperf3: \x1b[2J\x9b"])
    assert "  - x: iperf3: \\x1b[2J\\x9b\n" in text


def test_the_terminal_does_not_wait_for_pandas() -> None:
    code = (
        "import sys, bench.presentation.tables; print({'pandas', 'matplotlib', 'numpy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
