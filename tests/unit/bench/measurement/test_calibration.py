from bench.measurement.calibration import Probed, alone_for, seconds_for, with_probes
from testbed.scenario import load
from testbed.scenario.addressing import Addressing
from tests.paths import ROOT
from tests.unit.bench.builders import scenario as small

CONTMEC = ROOT / "scenarios" / "contmec.yaml"


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
    assert with_probes(scenario) == Probed(scenario, {}, [])


def test_between_zones_paths_are_used_for_a_hundred_round_trips_longer() -> None:
    zones = {
        "zones": {"north": {"delay": 0.01}, "south": {"delay": 0.015}},
        "nodes": {"master": {"zone": "north"}, "left": {"zone": "north"}, "right": {"zone": "south"}},
    }
    assert seconds_for(small()) == 1
    assert seconds_for(small(**zones)) == 6
    assert alone_for(small(**zones)) == 6
    probed = with_probes(small(**zones))
    assert {probe.duration for probe in probed.probes.values()} == {7}
    assert [(one.start, one.duration) for one in probed.others] == [(6, 7)]


def test_what_disturbs_is_on_for_the_rest_of_the_second() -> None:
    scenario = load(CONTMEC)
    (other,) = with_probes(scenario).others
    (disturbance,) = scenario.disturbances
    assert (other.source, other.destination) == (disturbance.source, disturbance.destination)
    assert (other.start, other.parallel) == (0.4, disturbance.parallel)
    assert other in with_probes(scenario).scenario.traffic
    assert alone_for(scenario) == 0.4


def test_the_moment_with_most_streams_that_disturb_counts() -> None:
    between = {"from": "one", "to": "two", "duration": 3}
    noises = [
        {"name": "first", **between, "start": 1},
        {"name": "second", **between, "start": 3, "parallel": 2},
        {"name": "third", **between, "start": 7, "parallel": 2},
    ]
    others = with_probes(small(disturbances=noises)).others
    assert [other.parallel for other in others] == [1, 2]  # the first two, from 3 s to 4 s
