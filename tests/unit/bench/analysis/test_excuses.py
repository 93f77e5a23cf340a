from collections.abc import Hashable

import numpy as np
import pandas as pd
import pytest

from bench.analysis import excuses
from bench.recording.records import CpuUse, Stall, Stretch
from testbed.scenario import Scenario, enforcements
from testbed.scenario.enforcements import Kind
from tests.unit.bench.builders import repetition, samples, scenario, with_senders

STARTS = np.arange(0.0, 10.0, 0.1)
ENDS = STARTS + 0.1
# 1 Gbit/s of Ethernet frames are this much payload through VXLAN at an MTU of 1500.
FULL = 1e9 * 1398 / 1514


def linked(**fields: object) -> Scenario:
    return scenario(**{"underlay": {"rate": "1G"}, "disturbances": [], **fields})


def with_room(of: Scenario, rate: float) -> np.ndarray:
    flow = of.flows[0]
    table = samples(of, lambda _f, _t: rate)
    tables: dict[Hashable, pd.DataFrame] = {(flow.label, 0, "receiver"): table[table["flow"] == flow.label]}
    return excuses.room(STARTS, ENDS, flow, tables, of, 0)


@pytest.mark.parametrize(("busiest", "found"), [(0.98, 6), (0.9, 0), (None, 0)])
def test_one_saturated_processor_is_enough(busiest: float | None, found: int) -> None:
    made = repetition(scenario())
    made.cpu = [CpuUse(start_s=2.0, end_s=2.5, busy=0.6, steal=0.0, busiest=busiest)]
    assert excuses.stalled(STARTS + 0.01, ENDS + 0.01, made, 0.1).sum() == pytest.approx(found, abs=1)


@pytest.mark.parametrize(("steal", "found"), [(0.1, 6), (0.09, 0)])
def test_a_machine_whose_host_takes_its_processors_away(steal: float, found: int) -> None:
    made = repetition(scenario())
    made.cpu = [CpuUse(start_s=2.0, end_s=2.5, busy=0.4, steal=steal, busiest=0.5)]
    assert excuses.stalled(STARTS + 0.01, ENDS + 0.01, made, 0.1).sum() == pytest.approx(found, abs=1)


def test_what_was_held_up_arrives_in_the_sample_after() -> None:
    made = repetition(scenario(), busy=0.1)
    made.stalls = [Stall(start_s=5.02, end_s=5.07)]
    assert STARTS[excuses.stalled(STARTS, ENDS, made, 0.1)] == pytest.approx([5.0, 5.1])


def test_a_sample_in_which_a_processor_had_nothing_to_spare() -> None:
    made = repetition(scenario(), busy=0.1)
    made.saturated = [Stretch(start_s=5.02, end_s=5.12)]
    assert STARTS[excuses.stalled(STARTS, ENDS, made, 0.1)] == pytest.approx([5.0, 5.1, 5.2])


@pytest.mark.parametrize(("begin", "first"), [(5.008, 4.9), (5.012, 5.0)])
def test_a_sample_ends_a_little_later_than_it_says(begin: float, first: float) -> None:
    """iperf3 begins that much after its release; a stall within it may have cost the sample before."""
    made = repetition(scenario(), busy=0.1)
    made.stalls = [Stall(start_s=begin, end_s=5.07)]
    assert STARTS[excuses.stalled(STARTS, ENDS, made, 0.1)][0] == pytest.approx(first)


def test_without_the_senders_record_nobody_is_idle() -> None:
    table = with_senders(samples(scenario(), lambda _f, _t: 1.0), lambda _t: 1.0)
    assert not excuses.idle(table[table["source"] == "nobody"], ENDS, 1.0).any()


@pytest.mark.parametrize(("share", "found"), [(0.95, True), (0.97, False)])
def test_a_link_has_room_if_less_arrived_than_it_carries(share: float, found: bool) -> None:
    assert with_room(linked(), share * FULL).all() == found


@pytest.mark.parametrize(("share", "found"), [(0.86, True), (0.88, False)])
def test_a_link_is_full_when_all_is_taken_that_its_enforcement_lets_traffic_have(
    share: float, found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = linked()
    assert with_room(of, share * FULL).all()
    monkeypatch.setattr(enforcements, "of", lambda _scenario: Kind("mean", link_share=0.9))
    assert with_room(of, share * FULL).all() == found


def test_a_machine_without_rates_on_its_links_has_no_room_to_speak_of() -> None:
    assert not with_room(scenario(disturbances=[]), 0.1).any()


def test_datagrams_may_fill_a_link_with_less_payload() -> None:
    of = linked()
    flow = of.flows[0].model_copy(update={"protocol": "udp"})
    assert not with_room(of.model_copy(update={"flows": [flow, *of.flows[1:]]}), 0.1).any()


ZONED = {
    "zones": {"north": {"rate": "500M"}, "south": {}},
    "nodes": {"master": {"zone": "north"}, "left": {"zone": "north"}, "right": {"zone": "south"}},
}


@pytest.mark.parametrize(("share", "found"), [(0.95, True), (0.97, False)])
def test_a_trunk_between_the_nodes_has_room_too_or_none(share: float, found: bool) -> None:
    assert with_room(linked(**ZONED), share * FULL / 2).all() == found


@pytest.mark.parametrize(("share", "found"), [(0.95, True), (0.97, False)])
def test_a_node_s_own_link_is_as_fast_as_it_is(share: float, found: bool) -> None:
    slow = linked(nodes={"master": {}, "left": {}, "right": {"rate": "250M"}})
    assert with_room(slow, share * FULL / 4).all() == found


def test_a_trunk_alone_can_be_full() -> None:
    alone = scenario(disturbances=[], **ZONED)
    assert with_room(alone, 0.5 * FULL / 2).all()
    assert not with_room(alone, FULL / 2).any()
