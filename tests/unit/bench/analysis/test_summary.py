from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.analysis import flow_phases, machine, statistics, summary, verdict
from bench.analysis.samples import parted
from bench.analysis.summary import PhaseSummary, RepetitionSummary
from bench.recording.atomic import StoredError
from bench.recording.records import Calibration, Delayed
from tests.unit.bench.builders import record, samples, scenario


def built(delayed: list[Delayed] | None = None) -> summary.Summary:
    experiment = scenario()
    made = record(experiment)
    made.repetitions[0].delayed = delayed
    observed = flow_phases.observe(parted(samples(experiment, lambda _f, _t: 2e8)), experiment, made)
    judged = verdict.judge(experiment, made, observed, [])
    machines = machine.observe(parted(samples(experiment, lambda _f, _t: 2e8)), {}, experiment, made)
    return summary.build(experiment, made, observed, judged, machines).analysed(1.23456)


def written(found: summary.Summary) -> summary.Summary:
    """Return what is in the file, where numbers are rounded."""
    return summary.Summary.model_validate_json(summary.render(found))


def test_the_contract() -> None:
    data = json.loads(summary.render(built()))
    assert data["schema"] == 1
    assert data["run_id"] == "20260101T000000Z-small-pod"
    assert (data["scenario"], data["provider"], data["orchestrator"], data["enforcement"]) == (
        "small",
        "netns",
        "cni",
        "pod",
    )
    assert (data["verdict"], data["reasons"]) == ("held", [])
    assert data["seconds"] == {"up": 0.1, "calibration": 1.0, "traffic": 10.0, "down": 0.1, "analysis": 1.235}
    flow, _, noise = data["flows"]
    assert (flow["name"], flow["role"]) == ("A -> C", "guaranteed")
    assert (flow["guarantee_bps"], flow["expected_goodput_bps"]) == (1e8, 95491803.3)
    assert {"mean_bps", "p01_bps", "attainment", "samples"} <= flow["phases"]["quiet"].keys()
    assert flow["phases"]["disturbed"]["samples"] == 30
    assert noise["role"] == "disturbance"
    assert noise["guarantee_bps"] is None
    assert list(noise["phases"]) == ["disturbed"]
    assert noise["phases"]["disturbed"]["attainment"] is None
    assert noise["phases"]["disturbed"]["mean_bps"] == pytest.approx(2e8)


def test_delays_are_there_only_where_a_trunk_takes_time() -> None:
    assert "delayed" not in json.loads(summary.render(built()))["machine"][0]
    relay = Delayed(
        zone="north", out=True, means="relay", delay_s=0.005,
        frames=1000, late=3, worst_s=0.0012, dropped=0, lateness=[0, 990, 0, 0, 10],
    )  # fmt: skip
    netem = Delayed(zone="north", out=False, means="netem", delay_s=0.005)
    (one,) = json.loads(summary.render(built([relay, netem])))["machine"]
    assert one["delayed"] == [
        {
            "zone": "north", "out": True, "means": "relay", "delay_s": 0.005, "frames": 1000,
            "late": 0.003, "p99_s": 2e-06, "worst_s": 0.0012, "dropped": 0,
        },
        {
            "zone": "north", "out": False, "means": "netem", "delay_s": 0.005, "frames": None,
            "late": None, "p99_s": None, "worst_s": None, "dropped": None,
        },
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("totals", "before", "after"), [([], None, None), ([5e9], 5e9, None), ([5e9, 4e9], 5e9, 4e9)]
)
def test_the_first_calibration_and_the_last(
    totals: list[float], before: float | None, after: float | None
) -> None:
    experiment = scenario()
    made = record(
        experiment, calibrations=[Calibration(seconds=1.0, bits_per_second={"A -> C": one}) for one in totals]
    )
    found = summary._calibration(made)
    assert found is not None
    assert (found.before_bps, found.after_bps, found.total_bps) == (before, after, 1e10)


def test_a_phase_is_judged_by_the_worst_of_the_repetitions_that_missed() -> None:
    def once(number: int, mean: float, met: bool | None) -> RepetitionSummary:
        return RepetitionSummary(
            repetition=number, mean_bps=mean, p01_bps=mean, attainment=1.0, samples=5, cpu_busy=None, met=met
        )

    def phase(*repetitions: RepetitionSummary) -> PhaseSummary:
        return PhaseSummary(
            mean_bps=7.0, p01_bps=7.0, attainment=1.0, samples=5, cpu_busy=None, shortfall=None, met=None,
            repetitions=list(repetitions),
        )  # fmt: skip

    missed = phase(once(0, 1.0, True), once(1, 3.0, False), once(2, 2.0, False), once(3, 0.5, None))
    assert missed.judged == missed.repetitions[2]
    for met in (True, None):
        whole = phase(once(0, 1.0, met))
        assert whole.judged == whole


def test_what_is_written_reads_back(tmp_path: Path) -> None:
    file = tmp_path / "summary.json"
    file.write_text(summary.render(built()))
    assert summary.read(file) == written(built())


def test_later_fields_are_ignored_and_other_versions_refused(tmp_path: Path) -> None:
    data = json.loads(summary.render(built()))
    file = tmp_path / "summary.json"
    file.write_text(json.dumps({**data, "colour": "blue"}))
    assert summary.read(file) == written(built())
    file.write_text(json.dumps({**data, "schema": 2}))
    with pytest.raises(StoredError, match="schema: input should be 1"):
        summary.read(file)


def test_how_well_a_mean_is_known() -> None:
    data = json.loads(summary.render(built()))
    flow, _, noise = data["flows"]
    quiet, disturbed = flow["phases"]["quiet"], flow["phases"]["disturbed"]
    known = {"low": 2e8, "high": 2e8, "level": 0.95, "unit": "within this run"}
    assert quiet["intervals"]["mean_bps"] == known
    assert quiet["intervals"]["attainment"] == {**known, "low": 1.0, "high": 1.0}
    assert quiet["intervals"]["shortfall"] == {**known, "low": 0.0, "high": 0.0}
    assert (quiet["intervals"]["block_length"], quiet["intervals"]["seed"]) == (5, statistics.SEED)
    assert quiet["intervals"]["lag1"] is None
    assert noise["phases"]["disturbed"]["intervals"]["attainment"] is None
    assert (quiet["effect"], noise["phases"]["disturbed"]["effect"]) == (None, None)
    assert (disturbed["effect"]["share"], disturbed["effect"]["threshold"]) == (0.0, 0.01)
    assert disturbed["effect"]["interval"]["unit"] == "within this run"
    assert data["notes"] == ["one repetition: nothing is known from run to run"]


def test_over_five_repetitions_the_effect_is_that_of_each() -> None:
    def rate(_flow: str, start: float) -> float:
        # The disturbance takes a tenth of a percent of 95.5 Mbit/s.
        return 2e8 - (95491.8 if 2.9 <= start < 6 else 0)

    experiment = scenario(measurement={"repetitions": 5})
    made = record(experiment)
    table = samples(experiment, rate)
    # Each repetition has a level of its own.
    table["bits_per_second"] += table["repetition"] * 1e7
    observed = flow_phases.observe(parted(table), experiment, made)
    judged = verdict.judge(experiment, made, observed, [])
    result = written(summary.build(experiment, made, observed, judged))
    disturbed = result.flows[0].phases["disturbed"]
    assert disturbed.intervals is not None
    assert disturbed.intervals.block_length is None
    assert disturbed.intervals.mean_bps.unit == "repetitions"
    assert disturbed.intervals.mean_bps.half > 1e7
    for found in (disturbed.intervals.attainment, disturbed.intervals.shortfall):
        assert found is not None
        assert (found.low, found.high) == (round(found.low, 6), round(found.high, 6))
    assert disturbed.effect is not None
    assert disturbed.effect.share == pytest.approx(-0.001, abs=1e-4)
    assert disturbed.effect.share == round(disturbed.effect.share, 6)  # parts of a million
    assert disturbed.effect.interval.half < 1e-6
