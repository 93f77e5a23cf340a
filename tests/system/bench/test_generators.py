"""A generator from outside the project beside iperf3, in one run."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from bench.analysis import samples
from bench.console.progress import Display
from bench.measurement import experiment, plan
from bench.recording import requests
from bench.recording.directory import Recording
from bench.recording.records import Request
from docs.examples.exchange_generator import Exchange
from testbed.assembly import assemble
from testbed.scenario import load
from tests.paths import ROOT

SECONDS = 1
ASKED = [
    "pods.A-1.guarantee=null",
    "pods.A-2.guarantee=null",
    f"flows[0].duration={SECONDS}",
    "flows[0].rate=50M",
    f"flows[1].duration={SECONDS}",
    "flows[1].generator=exchange",
    "settings.generator.exchange.pause=0.01",
    "disturbances=[]",
]


def run(reports: Path) -> Recording:
    asked = Request(scenario="kubernetes", overrides=tuple(ASKED), reports=str(reports))
    display = Display(Console(file=io.StringIO()), "test")
    return experiment.run(asked, requests.read(asked), display)


@pytest.mark.long(one_in=0)
def test_exchanges_are_timed_beside_a_flow(tmp_path: Path) -> None:
    recording = run(tmp_path)
    readings = samples.read(recording, recording.scenario(), recording.run_record())
    assert readings.faults == []
    table = readings.samples
    bulk, timed = (table[table["flow"] == flow.label] for flow in recording.scenario().flows)
    assert bulk["exchange_s"].isna().all()
    intervals = SECONDS / recording.scenario().measurement.interval
    for side in samples.SIDES:
        for of_flow in (bulk, timed):
            seen = of_flow[of_flow["source"] == side]
            # Beside other tests one may pass without the processor, and so without a sample of its own.
            assert 1 < len(seen) <= intervals
            assert (seen["bits_per_second"] > 0).any()
    asked = timed[timed["source"] == "sender"]["exchange_s"].dropna()
    assert len(asked) > 0
    assert (asked > 0).all()
    assert (asked < SECONDS).all()
    sent = timed[timed["source"] == "sender"]
    seconds = sent["end_s"].max() - sent["start_s"].min()
    assert readings.totals[0, recording.scenario().flows[1].label, "sender"] / 64 <= seconds / 0.01 + 1
    totals = [readings.totals[0, recording.scenario().flows[1].label, side] for side in samples.SIDES]
    assert totals[0] == totals[1] > 0


def test_a_program_that_is_missing_is_named_before_there_is_traffic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Exchange, "programs", ("sh", "/usr/bin/no such program"))
    scenario = load(ROOT / "scenarios" / "kubernetes.yaml", ASKED)
    testbed = assemble(scenario, "netns", "cni")
    testbed.up()
    try:
        with pytest.raises(RuntimeError) as caught:
            plan.plan(testbed, scenario.traffic, 0.1)
    finally:
        testbed.down()
    ends = (scenario.flows[1].source, scenario.flows[1].destination)
    assert str(caught.value).splitlines() == [
        f"{end}: no program /usr/bin/no such program, which generator 'exchange' needs" for end in ends
    ]
