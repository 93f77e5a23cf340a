"""The probes of a scenario; whether a machine can tell, from numbers as calibrations on 2 cores had them."""

from __future__ import annotations

import pytest

from bench.measurement.calibration import NONE, Pauses, bridged, carried, foresee, margin, with_probes
from testbed.scenario import load
from testbed.scenario.addressing import Addressing
from tests.paths import ROOT
from tests.unit.bench.builders import scenario as small

CONTMEC = ROOT / "scenarios" / "contmec.yaml"
NEEDS = {"1": 0.955e9, "2": 2.865e9, "3": 3.82e9}
# A quota of a third of both processors: it lets each run for a third of 100 ms.
QUOTA = Pauses(share=0.72, mean_s=0.072, buffer_bytes=32 << 20)


def test_probes_take_the_guaranteed_flows_paths() -> None:
    scenario = load(CONTMEC)
    grown = with_probes(scenario)
    probed = grown.scenario
    assert list(grown.probes) == [flow.label for flow in scenario.flows]
    assert len(grown.probes) == 3
    for flow in scenario.flows:
        transfer = grown.probes[flow.label]
        assert transfer in probed.traffic
        for end, probe in ((flow.source, transfer.source), (flow.destination, transfer.destination)):
            original, stand_in = probed.pods[end], probed.pods[probe]
            assert (stand_in.cluster, stand_in.node) == (original.cluster, original.node)
            assert stand_in.guarantee is None
            assert probe not in scenario.pods


def test_ports_of_the_scenario_s_own_traffic_stay() -> None:
    scenario = load(CONTMEC)
    before, after = Addressing(scenario), Addressing(with_probes(scenario).scenario)
    for traffic in scenario.traffic:
        assert after.port_of(traffic) == before.port_of(traffic)
    ports = {after.port_of(traffic) for traffic in after.scenario.traffic}
    assert len(ports) == len(after.scenario.traffic)


def test_a_probe_does_not_take_a_name_that_is_taken() -> None:
    scenario = load(CONTMEC, ["pods.probe-1={cluster: a, node: worker-01, guarantee: 5M}"])
    grown = with_probes(scenario)
    assert grown.scenario.pods["probe-1"].guarantee == 5_000_000
    assert "probe-1" not in {t.source for t in grown.probes.values()}


def test_without_a_promise_there_is_nothing_to_calibrate() -> None:
    scenario = load(CONTMEC, [f"pods.{pod}.guarantee=null" for pod in ("A-1", "A-2", "B-1")])
    probed = with_probes(scenario)
    assert (probed.scenario, probed.probes, probed.others) == (scenario, {}, [])


def test_between_zones_paths_are_used_for_a_hundred_round_trips_longer() -> None:
    zones = {
        "zones": {"north": {"delay": 0.01}, "east": {"delay": 0.005}, "south": {"delay": 0.015}},
        "nodes": {"master": {"zone": "north"}, "left": {"zone": "north"}, "right": {"zone": "south"}},
    }
    assert with_probes(small()).seconds == 1
    assert with_probes(small(**zones, disturbances=[])).seconds == 6
    probed = with_probes(small(**zones))
    assert (probed.alone_s, probed.seconds) == (6, 12)
    assert {probe.duration for probe in probed.probes.values()} == {12}
    assert [(one.start, one.duration) for one in probed.others] == [(6, 12)]


@pytest.mark.parametrize("delay", [0.0, 0.001, 0.0025, 0.015])
def test_there_is_time_to_look_at_the_paths_once_they_have_settled_beside_what_disturbs(delay: float) -> None:
    zones = {"north": {"delay": delay}, "south": {"delay": delay}} if delay else {}
    probed = with_probes(small(zones=zones, nodes={key: {} for key in ("master", "left", "right")}))
    assert probed.others
    assert probed.seconds - probed.settled_s >= 0.4


def test_where_nothing_disturbs_what_the_probes_had_is_all_that_was_carried() -> None:
    zones = {"north": {"delay": 0.001}, "south": {"delay": 0.001}}
    for alone in (with_probes(small(disturbances=[])), with_probes(small(zones=zones, disturbances=[]))):
        assert carried(alone, [{"flow": 5.0}, {"flow": 7.0}], {}) == 6.0


def test_what_disturbs_is_on_for_the_rest_of_the_second() -> None:
    scenario = load(CONTMEC)
    (other,) = with_probes(scenario).others
    (disturbance,) = scenario.disturbances
    assert (other.source, other.destination) == (disturbance.source, disturbance.destination)
    assert (other.start, other.parallel) == (0.4, disturbance.parallel)
    assert other in with_probes(scenario).scenario.traffic
    assert with_probes(scenario).alone_s == 0.4


def test_the_moment_with_most_streams_that_disturb_counts() -> None:
    between = {"from": "one", "to": "two", "duration": 3}
    noises = [
        {"name": "first", **between, "start": 1},
        {"name": "second", **between, "start": 3, "parallel": 2},
        {"name": "third", **between, "start": 7, "parallel": 2},
    ]
    others = with_probes(small(disturbances=noises)).others
    assert [other.parallel for other in others] == [1, 2]  # the first two, from 3 s to 4 s


def shares(bits_per_second: float) -> dict[str, float]:
    return dict.fromkeys(NEEDS, bits_per_second)


def scales(each: float, filled: bool = False, pauses: Pauses = NONE) -> list[float]:
    found = foresee(NEEDS, [shares(each)] * 5, 1, filled, pauses=pauses)
    assert [one.scale for one in found] == [1.0, 0.5, 0.2, 0.1]
    return [one.scale for one in found if one.can_tell]


@pytest.mark.parametrize(
    ("needs", "of", "others", "expected"),
    [
        ({"a": 1.0}, {"a": 3.0}, 0, 3.0),
        # A flow that needs a quarter of its share leaves the rest to one that needs more than it has.
        ({"a": 1.0, "b": 5.0}, {"a": 4.0, "b": 4.0}, 0, 1.75 / 1.25),
        # With a disturbance both share what it leaves; what a small flow needs more than once is not lost.
        ({"a": 1.0, "b": 5.0}, {"a": 4.0, "b": 4.0}, 1, 1.375 / 1.25),
        ({"a": 8.0, "b": 8.0}, {"a": 4.0, "b": 4.0}, 1, 0.5),
        ({"a": 1.0, "b": 0.0}, {"a": 4.0, "b": 4.0}, 0, 8.0),
        ({"a": 1.0}, {"a": 0.0}, 1, 0.0),
    ],
)
def test_what_flows_can_have_is_shared_out_by_max_min_fairness(
    needs: dict[str, float], of: dict[str, float], others: int, expected: float
) -> None:
    assert margin(needs, of, others) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("each", "expected"),
    [
        (10e9, [1.0, 0.5, 0.2, 0.1]),  # idle
        (6.9e9, [1.0, 0.5, 0.2, 0.1]),  # beside a process that uses one processor
        (4e9, [0.5, 0.2, 0.1]),
        (1e9, [0.1]),
        (0.2e9, []),
    ],
)
def test_a_scale_is_excluded_where_there_is_little_room_beside_the_disturbance(
    each: float, expected: list[float]
) -> None:
    assert scales(each) == expected


def test_one_low_sample_of_five_is_none_that_decides() -> None:
    high, low = shares(10e9), shares(1e9)
    assert foresee(NEEDS, [high] * 4 + [low], 1)[0].can_tell
    assert not foresee(NEEDS, [high] * 3 + [low] * 2, 1)[0].can_tell


def test_full_links_are_the_limit_and_not_the_machine() -> None:
    assert scales(0.2e9, filled=True) == [1.0, 0.5, 0.2, 0.1]


def test_a_scale_whose_promise_is_near_what_the_paths_carry_is_excluded() -> None:
    found = foresee(NEEDS, [shares(10e9)] * 5, 1, fits=lambda scale: scale < 1)
    assert [one.can_tell for one in found] == [False, True, True, True]


def test_buffers_bridge_pauses_of_a_quota_at_a_fifth_of_every_rate() -> None:
    """Measured: 7.6 Gbit/s fell to two thirds, a fifth of that was held."""
    assert scales(10e9, pauses=QUOTA) == [0.2, 0.1]
    assert not bridged(NEEDS, QUOTA)


def test_one_pause_is_an_accident() -> None:
    assert bridged(NEEDS, Pauses(share=0.09, mean_s=0.09, buffer_bytes=32 << 20))


def test_nothing_is_told_where_nothing_was_sampled() -> None:
    assert not any(one.can_tell for one in foresee(NEEDS, [], 1))
