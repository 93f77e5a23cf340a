"""A recording of many flows over many minutes, as what is made of one takes it: its samples are made up."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from bench import pipeline
from bench.analysis import exchanges, flow_phases, machine, summary, verdict
from bench.analysis.samples import COLUMNS, parted, role_of
from bench.analysis.summary import Summary
from bench.presentation import report
from bench.presentation.figures import registry
from bench.presentation.figures.sheet import PAGE, Subject
from bench.recording import atomic
from bench.recording.directory import Recording
from bench.recording.records import Repetition, RunRecord, Stall, Stretch
from testbed.scenario import Scenario, render_yaml
from tests.unit.bench.builders import record, repetition, scenario


def large(flows: int = 20, seconds: int = 600, repetitions: int = 1) -> Scenario:
    """As many flows for so long, of 50 Mbit/s to 1 Gbit/s, and two disturbances one after another."""
    pods: dict[str, dict[str, str]] = {}
    for number in range(1, flows + 1):
        pods[f"S-{number}"] = {"cluster": "a", "node": "left", "guarantee": f"{50 * number}M"}
        pods[f"D-{number}"] = {"cluster": "a", "node": "right"}
    return scenario(
        pods=pods,
        flows=[
            {
                "name": f"({number}) S-{number} -> D-{number}",
                "from": f"S-{number}",
                "to": f"D-{number}",
                "duration": seconds,
            }
            for number in range(1, flows + 1)
        ],
        disturbances=[
            {"name": name, "from": "one", "to": "two", "start": seconds * start, "duration": seconds * 0.1}
            for name, start in (("noise", 0.3), ("more noise", 0.6))
        ],
        measurement={"repetitions": repetitions},
    )


def samples(of: Scenario, repetitions: int = 1) -> pd.DataFrame:
    """Both sides' samples of every transfer, at times and rates as uneven as iperf3's are."""
    chance = np.random.default_rng(18)
    tables = []
    for number in range(repetitions):
        for traffic in of.traffic:
            share = 12e9 if traffic in of.disturbances else 0.955 * float(of.guarantee_of(traffic) or 0)
            for source in ("receiver", "sender"):
                count = round(traffic.duration / of.measurement.interval)
                edges = traffic.start + 0.003 + np.arange(count + 1) * of.measurement.interval
                edges = np.round(edges + chance.uniform(-0.0005, 0.0005, count + 1), 6)
                rates = share * (1 + chance.normal(0, 0.004, count))
                rates[count // 3] *= 0.2
                table = {"repetition": number, "flow": traffic.label, "role": role_of(of, traffic)}
                times = {"start_s": edges[:-1], "end_s": edges[1:]}
                rest = {
                    "bits_per_second": rates,
                    "source": source,
                    "window_bps": np.nan,
                    "exchange_s": np.nan,
                }
                tables.append(pd.DataFrame({**table, **times, **rest}, columns=list(COLUMNS)))
    return pd.concat(tables, ignore_index=True).astype(COLUMNS)


def watched(of: Scenario) -> Repetition:
    """One in which the machine stood still, and a processor was saturated."""
    end = of.duration
    stretches = {
        "stalls": [Stall(start_s=end * 0.2, end_s=end * 0.2 + 0.043)],
        "saturated": [Stretch(start_s=end * 0.45, end_s=end * 0.45 + 0.5)],
    }
    return repetition(of).model_copy(update=stretches)


def recorded(of: Scenario) -> RunRecord:
    return record(of, repetitions=[watched(of) for _ in range(of.measurement.repetitions)])


def summarised(of: Scenario, table: pd.DataFrame) -> Summary:
    made = recorded(of)
    observed = flow_phases.observe(parted(table), of, made)
    judged = verdict.judge(of, made, observed, [])
    return summary.build(of, made, observed, judged, machine.observe(parted(table), {}, of, made))


def write(directory: Path, of: Scenario, table: pd.DataFrame) -> Recording:
    """Leave the page and all that it links to, made as an analysis makes them."""
    recording = Recording(directory)
    directory.mkdir(exist_ok=True)
    recording.scenario_file.write_text(render_yaml(of), encoding="utf-8")
    recording.environment_file.write_text('{"host": {"kernel": "none"}}')
    made, result = recorded(of), summarised(of, table)
    atomic.write_model(recording.run_file, made)
    drawn = registry.draw(Subject(of, made, result, table, exchanges.joined([])), PAGE)
    recording.report_file.write_text(report.render(recording, of, made, result, table, drawn), "utf-8")
    recording.samples_file.write_bytes(pipeline.parquet(table))
    recording.summary_file.write_text(summary.render(result), "utf-8")
    recording.figures_directory.mkdir(exist_ok=True)
    for name, files in drawn.items():
        for kind, content in files.items():
            (recording.figures_directory / f"{name}.{kind}").write_bytes(content)
    return recording
