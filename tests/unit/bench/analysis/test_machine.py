from __future__ import annotations

import pytest

from bench.analysis import machine
from bench.analysis.samples import parted
from bench.recording.records import Load
from tests.unit.bench.builders import record, samples, scenario


def test_what_was_not_recorded_is_not_known() -> None:
    experiment = scenario()
    (one,) = machine.observe(
        parted(samples(experiment, lambda _f, _t: 1e8)), {}, experiment, record(experiment)
    )
    assert (one.softirq, one.pressure, one.dropped, one.default_class_bytes) == (None, None, None, None)
    assert one.retransmits == {}


def test_the_greatest_pressure_of_the_machines_counts() -> None:
    experiment = scenario(measurement={"repetitions": 2})
    made = record(experiment)
    made.repetitions[1].loads = {
        "left": Load(softirq=[0.1, 0.2], pressure=0.3),
        "right": Load(softirq=[0.4], pressure=0.1),
        "other": Load(softirq=[0.0]),
    }
    made.repetitions[1].dropped = {"left eth1 1:": 7}
    table = samples(experiment, lambda _f, _t: 1e8)
    before, one = machine.observe(parted(table), {(0, "A -> C"): 3, (1, "B -> D"): 5}, experiment, made)
    assert before.retransmits == {"A -> C": 3}
    assert one.retransmits == {"B -> D": 5}
    assert one.softirq == {"left": [0.1, 0.2], "right": [0.4], "other": [0.0]}
    assert one.pressure == 0.3
    assert one.dropped == {"left eth1 1:": 7}


def test_irregular_intervals_are_counted_for_each_receiver() -> None:
    experiment = scenario(disturbances=[])
    table = samples(experiment, lambda _f, _t: 1e8)
    late = (table["flow"] == "A -> C") & (table["start_s"] == 4.0)
    table.loc[late, "end_s"] = 4.15
    hardly = (table["flow"] == "B -> D") & (table["start_s"] == 4.0)
    table.loc[hardly, "end_s"] = 4.109
    (one,) = machine.observe(parted(table), {}, experiment, record(experiment))
    assert one.irregular["A -> C"].share == pytest.approx(0.01)
    assert one.irregular["A -> C"].longest_s == pytest.approx(0.15)
    assert one.irregular["B -> D"].share == 0
