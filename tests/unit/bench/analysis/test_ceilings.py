from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bench.analysis import ceilings, flow_phases
from bench.analysis.samples import parted, read
from bench.analysis.verdict import Verdict, judge
from bench.observations.causes import Cause
from bench.recording import archive
from bench.recording.directory import Recording
from bench.recording.records import Calibration
from bench.studies.promise.checks import goodput
from bench.studies.promise.index import INDEX
from bench.studies.promise.report import PUBLISHED
from bench.studies.reproduction import regeneration
from testbed import registry
from testbed.scenario import Scenario
from tests.paths import ROOT
from tests.unit.bench.builders import Rate, record, samples, scenario

# What 100 Mbit/s of frames leave a TCP flow (docs/explanation/what-a-guarantee-counts.md), bit/s.
LEFT = 95.492e6
PODS = {
    "A": {"cluster": "a", "node": "left", "guarantee": "100M"},
    "B": {"cluster": "a", "node": "left"},
    "C": {"cluster": "a", "node": "right"},
    "D": {"cluster": "a", "node": "right"},
}


def one_flow(**fields: Any) -> Scenario:
    return scenario(**{"flows": [{"from": "A", "to": "C"}], "disturbances": [], "pods": PODS, **fields})


def exceeded(of: Scenario, rate: Rate) -> list[Cause]:
    return list(ceilings.causes(parted(samples(of, rate)), of, record(of)))


def judged(of: Scenario, table: pd.DataFrame, **fields: Any) -> Verdict:
    made = record(of, **fields)
    found = list(ceilings.causes(parted(table), of, made))
    return judge(of, made, flow_phases.observe(parted(table), of, made), [], exceeded=found)


@pytest.mark.parametrize("network", ["pod", "bandwidth", "ptp-bandwidth"])
@pytest.mark.parametrize(("share", "outcome"), [(1.0, "held"), (1.049, "held"), (1.051, "violated")])
def test_who_claims_a_ceiling_is_violated_above_five_per_cent_more(
    network: str, share: float, outcome: str
) -> None:
    of = one_flow(enforcement=network)
    assert judged(of, samples(of, lambda _f, _t: share * LEFT)).outcome == outcome


def test_it_is_the_rule_of_the_kit_of_promises() -> None:
    assert goodput.MOST is ceilings.MOST


def test_numbers_are_said() -> None:
    (cause,) = exceeded(one_flow(enforcement="bandwidth"), lambda _f, _t: 589e6)
    assert cause.text == (
        "A -> C: 589 Mbit/s over 10 s, warm-up included, is 616.81 % of the 95.49 Mbit/s that the ceiling "
        "of A, 100 Mbit/s, leaves (at most 105 %)"
    )
    assert (cause.kind, cause.topics, cause.flow, cause.repetition) == ("promise", ("ceiling",), "A -> C", 0)
    assert cause.required == pytest.approx(1.05 * LEFT, rel=1e-4)


@pytest.mark.parametrize("network", ["none", "macvlan"])
def test_of_who_claims_none_nothing_is_judged(network: str) -> None:
    assert not exceeded(one_flow(enforcement=network), lambda _f, _t: 5e8)


@pytest.mark.parametrize(("ceiling", "count"), [(None, 0), ("300M", 0), ("200M", 1)])
def test_where_a_guarantee_is_a_floor_only_a_ceiling_is_one(ceiling: str | None, count: int) -> None:
    pods = {**PODS, "A": {**PODS["A"], "ceiling": ceiling}}
    of = one_flow(enforcement="node", pods=pods, underlay={"rate": "1G"})
    assert len(exceeded(of, lambda _f, _t: 2.5e8)) == count


def test_a_ceiling_that_is_exceeded_needs_no_guarantee_beside_it() -> None:
    pods = {**PODS, "A": {"cluster": "a", "node": "left", "ceiling": "100M"}}
    of = one_flow(enforcement="bandwidth", pods=pods)
    assert judged(of, samples(of, lambda _f, _t: 1.2 * LEFT)).outcome == "violated"
    # Nobody knows whether what stays below it was held there.
    assert judged(of, samples(of, lambda _f, _t: LEFT)).outcome == "invalid"


def test_a_described_network_says_itself_whether_guarantees_are_the_most() -> None:
    described = {
        "name": "mine",
        "claims": ["floor", "ceiling"],
        "told": "annotation",
        "annotations": {"guarantee": "example.org/rate"},
    }
    assert not exceeded(one_flow(enforcement=described), lambda _f, _t: 5e8)
    assert exceeded(one_flow(enforcement={**described, "caps_guarantees": True}), lambda _f, _t: 5e8)
    own = {**described, "annotations": {}}
    assert exceeded(one_flow(enforcement=own), lambda _f, _t: 5e8)


@pytest.mark.parametrize(("saved_up_s", "count"), [(0.084, 0), (2**32 / 1e8, 1)])
def test_what_was_saved_up_counts_however_fast_it_is_sent(saved_up_s: float, count: int) -> None:
    """Of the rate: what is allowed, and the burst that containerd tells."""
    of = one_flow(flows=[{"from": "A", "to": "C", "duration": 2}])
    table = samples(of, lambda _f, time: (1 + saved_up_s / 0.1) * LEFT if time < 0.1 else LEFT)
    assert len(list(ceilings.causes(parted(table), of, record(of)))) == count


def test_a_warm_up_hides_no_burst() -> None:
    of = one_flow(measurement={"warm_up": 2})
    assert exceeded(of, lambda _f, time: 5e9 if time < 1 else LEFT)


def test_less_than_two_seconds_are_no_long_run() -> None:
    short = one_flow(flows=[{"from": "A", "to": "C", "duration": 1}])
    assert not exceeded(short, lambda _f, _t: 5e8)
    assert exceeded(one_flow(flows=[{"from": "A", "to": "C", "duration": 2}]), lambda _f, _t: 5e8)


@pytest.mark.parametrize(("share", "count"), [(0.5, 0), (0.55, 1)])
def test_a_ceiling_is_for_all_that_a_pod_sends(share: float, count: int) -> None:
    flows = [{"from": "A", "to": "C"}, {"from": "A", "to": "D"}]
    found = exceeded(one_flow(flows=flows), lambda _f, _t: share * LEFT)
    assert len(found) == count
    assert all("A -> C and 1 more: " in cause.text for cause in found)


def test_flows_one_after_the_other_do_not_add_up() -> None:
    flows = [
        {"from": "A", "to": "C", "duration": 5},
        {"from": "A", "to": "D", "start": 5, "duration": 5},
    ]
    assert not exceeded(one_flow(flows=flows), lambda _f, _t: LEFT)


def test_every_repetition_is_judged_by_itself() -> None:
    of = one_flow(measurement={"repetitions": 2})
    table = samples(of, lambda _f, _t: LEFT)
    table.loc[table["repetition"] == 1, "bits_per_second"] = 2 * LEFT
    (cause,) = ceilings.causes(parted(table), of, record(of))
    assert cause.repetition == 1
    assert "A -> C, repetition-1: " in cause.text


def test_that_a_machine_is_too_slow_excuses_no_ceiling_that_was_exceeded() -> None:
    slow = Calibration(seconds=1.0, bits_per_second={"A -> C": 1.1e8})
    of = one_flow(enforcement="bandwidth")
    assert judged(of, samples(of, lambda _f, _t: LEFT), calibration=slow).outcome == "invalid"
    found = judged(of, samples(of, lambda _f, _t: 2 * LEFT), calibration=slow)
    assert found.outcome == "violated"
    assert [cause.kind for cause in found.causes] == ["promise", "machine"]


def test_a_measurement_that_failed_shows_no_ceiling_that_was_exceeded() -> None:
    of = one_flow(enforcement="bandwidth")
    failed = Calibration(seconds=1.0, bits_per_second={}, error="no route")
    assert judged(of, samples(of, lambda _f, _t: 2 * LEFT), calibration=failed).outcome == "invalid"


KEPT = ROOT / "reports"
BURST = "promise/bandwidth-kubernetes/20261123T185329Z-idle-bandwidth"
SOUND = "promise/bandwidth-cni"


def found_in(packed: Path, place: Path) -> list[Cause]:
    recording = Recording(archive.unpack(packed, place))
    of, made = recording.scenario(), recording.run_record()
    return list(ceilings.causes(parted(read(recording, of, made).samples), of, made))


def test_what_containerd_tells_is_no_ceiling_and_what_we_tell_is_one(tmp_path: Path) -> None:
    """Two kept recordings of one network and one scenario, whose plugins heard of other bursts."""
    (sound,) = (KEPT / SOUND / name for name in archive.packed_recordings(KEPT / SOUND) if "-idle-" in name)
    assert not found_in(sound, tmp_path / "sound")
    (cause,) = found_in(KEPT / BURST, tmp_path / "burst")
    assert cause.observed == pytest.approx(924.1e6, rel=0.001)
    assert "is 483.88 % of the 191 Mbit/s that the ceiling of promised, 200 Mbit/s, leaves" in cause.text


def test_of_what_is_kept_only_the_reference_plugins_on_kubernetes_exceed_theirs() -> None:
    rows = re.findall(
        r"^\| \[(.*)\]\(.*\) \| .* \| .* \| (.*) \| .* \| .* \| .* \|$", PUBLISHED.read_text(), re.M
    )
    assert {name for name, _ in rows} == {file.parent.name for file in KEPT.glob(f"promise/*/{INDEX}")}
    exceeding = {name for name, ceiling in rows if "violated" in ceiling}
    names = ("bandwidth-existing", "bandwidth-kubernetes", "bridge-firewall-bandwidth-kubernetes")
    assert exceeding == {*names, "ptp-bandwidth-kubernetes"}


@pytest.mark.long(one_in=0)
def test_of_the_reference_recordings_none_exceeds_a_ceiling() -> None:
    found = regeneration.summaries(sorted((KEPT / "reference").iterdir()), registry.load)
    assert all(found.values())
    reasons = [reason for each in found.values() for one in each for reason in one.reasons]
    assert not [reason for reason in reasons if "that the ceiling of" in reason]
