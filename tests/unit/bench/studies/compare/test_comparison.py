from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.analysis import flow_phases, statistics, summary, verdict
from bench.analysis.samples import parted
from bench.studies.compare import comparison
from bench.studies.compare.comparison import Comparison, Run, judge
from testbed.scenario.goodput import expected_goodput_of
from tests.unit.bench.builders import record, samples, scenario

MACHINE = {"processors": 2, "kernel": "6.18"}
STEADY = [1.0, 1.001, 0.999, 1.0, 1.0005]
PODS = {
    "A": {"cluster": "a", "node": "left", "guarantee": "100M"},
    "B": {"cluster": "a", "node": "left", "guarantee": "200M"},
    "C": {"cluster": "a", "node": "right"},
    "D": {"cluster": "a", "node": "right"},
}


def run(
    shares: Mapping[str, Sequence[float]] | Sequence[float] = STEADY,
    machine: Mapping[str, Any] = MACHINE,
    scale: float = 1.0,
    **fields: Any,
) -> Run:
    """A run whose flows got these shares of what is expected, one a repetition."""
    count = len(next(iter(shares.values())) if isinstance(shares, Mapping) else shares)
    made = scenario(**{"measurement": {"repetitions": count}, **fields}).scaled(scale)
    table = samples(made, lambda _flow, _time: 1.0)
    for flow in made.flows:
        got = shares[flow.label] if isinstance(shares, Mapping) else shares
        rows = table["flow"] == flow.label
        expected = expected_goodput_of(made, flow) or 0.0
        rates = table["repetition"].map({number: share * expected for number, share in enumerate(got)})
        table.loc[rows, "bits_per_second"] = rates[rows]
    done = record(made)
    observed = flow_phases.observe(parted(table), made, done)
    judged = verdict.judge(made, done, observed, [])
    result = summary.build(made, done, observed, judged)
    return Run(made, result, dict(machine), "abc")


def findings(found: Comparison) -> dict[str, set[str]]:
    """What was found of each flow in any phase."""
    return {flow: {row.finding for row in found.rows if row.flow == flow} for flow in ("A -> C", "B -> D")}


def both(what: str) -> dict[str, set[str]]:
    return {"A -> C": {what}, "B -> D": {what}}


def test_a_run_is_the_same_as_itself() -> None:
    found = comparison.compare(run(), run())
    assert findings(found) == both("same")
    assert found.finding == "same"
    assert [row.difference for row in found.rows] == [0.0] * 4


def test_the_interval_is_welchs_of_the_repetitions_shares() -> None:
    less = [share - 0.03 for share in STEADY[:4]]
    (row, *_) = comparison.compare(run(), run(less)).rows
    expected = statistics.welch(STEADY, less)
    assert (row.difference, row.low, row.high) == pytest.approx(
        (expected.difference, *expected.interval), abs=1e-6
    )
    assert row.repetitions == (5, 4)
    assert (row.finding, row.reason) == ("worse", None)


def test_more_is_better() -> None:
    assert comparison.compare(run(), run([share + 0.02 for share in STEADY])).finding == "better"


def test_one_flow_that_got_less_makes_it_worse() -> None:
    shares = {"A -> C": STEADY, "B -> D": [share - 0.03 for share in STEADY]}
    found = comparison.compare(run(), run(shares))
    assert findings(found) == {"A -> C": {"same"}, "B -> D": {"worse"}}
    assert found.finding == "worse"


def test_what_varies_too_much_cannot_be_told() -> None:
    found = comparison.compare(run([0.9, 1.0, 1.1]), run([0.92, 0.99, 1.1]))
    assert findings(found) == both("cannot tell")
    assert {row.reason for row in found.rows} == {None}


@pytest.mark.parametrize(("count", "numbers"), [(1, False), (2, True)])
def test_two_repetitions_are_too_few_whatever_they_show(count: int, numbers: bool) -> None:
    for found in (
        comparison.compare(run(), run(STEADY[:count])),
        comparison.compare(run(STEADY[:count]), run()),
    ):
        assert findings(found) == both("cannot tell")
        assert {row.reason for row in found.rows} == {"fewer than 3 repetitions"}
        assert {row.low is not None for row in found.rows} == {numbers}


def test_another_machine_cannot_be_told_unless_asked_for() -> None:
    other = run(machine={**MACHINE, "processors": 4})
    found = comparison.compare(run(), other)
    assert found.finding == "cannot tell"
    assert found.machines == ["processors is 2 and 4"]
    assert "--across-machines" in str(found.rows[0].reason)
    assert comparison.compare(run(), other, across_machines=True).finding == "same"
    assert comparison.compare(run(), run(machine={})).finding == "cannot tell"
    # What only one of the recordings has is from before it was recorded.
    assert comparison.compare(run(), run(machine={**MACHINE, "hypervisor": "KVM"})).finding == "same"


def test_the_scale_of_all_rates_does_not_count() -> None:
    found = comparison.compare(run(), run(scale=0.1))
    assert (found.scale, found.rates, found.finding) == (0.1, [], "same")


@pytest.mark.parametrize("scale", [1.0, 0.1])
def test_a_promise_that_was_made_smaller_is_no_excuse(scale: float) -> None:
    pods = {**PODS, "B": {**PODS["B"], "guarantee": "194M"}}
    flows = [{"from": "A", "to": "C"}, {"from": "B", "to": "D"}, {"from": "A", "to": "D", "rate": "1M"}]
    shares = {"A -> C": STEADY, "B -> D": STEADY, "A -> D": STEADY}
    found = comparison.compare(run(shares, flows=flows), run(shares, scale=scale, pods=pods, flows=flows))
    assert found.scale == scale
    assert found.rates == ["pods.B.guarantee is 0.97 of what it was"]
    assert findings(found) == {"A -> C": {"same"}, "B -> D": {"worse"}}


def test_another_enforcement_is_compared() -> None:
    found = comparison.compare(run(), run(enforcement="none"))
    assert (found.enforcements, found.finding) == (("pod", "none"), "same")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": "other"}, "name is small and other"),
        ({"flows": [{"from": "A", "to": "C"}]}, "flows is 2 entries and 1 entries"),
        ({"flows": [{"from": "A", "to": "C"}, {"from": "B", "to": "D", "duration": 9}]},
         r"flows\[1\].duration is 10 and 9"),
        ({"thresholds": {"effect": 0.02}}, "thresholds.effect is 0.01 and 0.02"),
        ({"underlay": {"rate": "1G"}}, "underlay.rate is not given and 1"),
    ],
)  # fmt: skip
def test_other_experiments_are_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(LookupError, match=f"different experiments: {words}"):
        comparison.compare(run(), run(**fields))


def test_titles_and_the_number_of_repetitions_may_differ() -> None:
    assert comparison.compare(run(), run(STEADY[:4], title="Again")).finding == "same"


@given(low=st.floats(-0.1, 0.1), width=st.floats(0, 0.1), effect=st.sampled_from([0.001, 0.01, 0.05]))
def test_every_interval_has_one_finding(low: float, width: float, effect: float) -> None:
    high = low + width
    difference = (low + high) / 2
    found = judge(difference, low, high, effect)
    assert (found == "same") == (low >= -effect and high <= effect)
    if found in ("better", "worse"):
        assert abs(difference) >= effect
        assert (low > 0) == (found == "better")
        assert (high < 0) == (found == "worse")
    assert judge(-difference, -high, -low, effect) == {"better": "worse", "worse": "better"}.get(found, found)


def test_the_worst_is_told() -> None:
    assert comparison.worst(["better", "same"]) == "better"
    assert comparison.worst(["better", "cannot tell", "same"]) == "cannot tell"
    assert comparison.worst(["cannot tell", "worse"]) == "worse"
    assert comparison.worst([]) == "cannot tell"
