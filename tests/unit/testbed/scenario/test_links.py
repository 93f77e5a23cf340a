"""Which links a packet passes, and how fast they are."""

from __future__ import annotations

import math

import pytest

from testbed.scenario import Scenario, enforcements, links
from testbed.scenario.links import Link
from tests.unit.testbed.builders import addressed

STATIONS = "examples/two-stations"


@pytest.fixture
def stations() -> Scenario:
    return addressed(STATIONS).scenario


def test_a_node_s_own_rate_goes_before_what_all_have(stations: Scenario) -> None:
    assert links.rate_of(stations, "worker-01") == 10**9
    assert links.rate_of(stations, "worker-03") == 4 * 10**8


def test_from_zone_to_zone_both_trunks_are_passed_and_within_one_none(stations: Scenario) -> None:
    assert links.way(stations, "worker-01", "worker-03") == (
        Link("worker-01", trunk=False, out=True),
        Link("north", trunk=True, out=True),
        Link("south", trunk=True, out=False),
        Link("worker-03", trunk=False, out=False),
    )
    assert [link.trunk for link in links.way(stations, "worker-01", "worker-02")] == [False, False]
    assert links.way(stations, "worker-01", "worker-01") == ()


def test_without_zones_there_are_the_two_links_of_the_nodes() -> None:
    contmec = addressed("contmec", "underlay.rate=9G").scenario
    way = links.way(contmec, "worker-01", "worker-02")
    assert [(link.owner, link.out) for link in way] == [("worker-01", True), ("worker-02", False)]
    assert {links.rate(contmec, link) for link in way} == {9 * 10**9}


def test_the_way_to_a_device_ends_with_its_gateway_s_link_to_the_segment_and_its_own() -> None:
    edge = addressed("edge").scenario
    to_pod, to_device = edge.flows
    assert links.passed(edge, to_pod) == links.way(edge, "worker-01", "worker-03")
    assert links.passed(edge, to_device) == (
        *links.way(edge, "worker-02", "worker-03"),
        Link("worker-03", trunk=False, out=True, segment="plant"),
        Link("camera", trunk=False, out=False, segment="plant"),
    )
    assert [links.rate(edge, link) for link in links.passed(edge, to_device)[-2:]] == [10**8, 10**8]


def test_the_narrowest_row_of_links_says_what_they_carry_together(stations: Scenario) -> None:
    # The senders' links, of which two flows share one, carry 1G + 400M; the trunks out 1G + 500M + worker-01.
    assert links.most(stations, map(stations.nodes_of, stations.flows)) == 14 * 10**8
    narrow = addressed(STATIONS, "zones.south.rate=100M").scenario
    crossing = [narrow.flows[0], narrow.flows[2]]
    assert links.most(narrow, map(narrow.nodes_of, crossing[:1])) == 10**8
    assert links.most(narrow, map(narrow.nodes_of, crossing[1:])) == 10**8


def test_without_rates_nothing_limits_what_links_carry() -> None:
    contmec = addressed("contmec").scenario
    assert links.most(contmec, map(contmec.nodes_of, contmec.flows)) == math.inf
    assert not links.limited(contmec)


@pytest.mark.parametrize("override", ["underlay.rate=9G", "nodes.worker-01={rate: 9G}"])
def test_packets_may_wait_where_any_link_has_a_rate(override: str) -> None:
    assert links.limited(addressed("contmec", override).scenario)


def test_packets_may_wait_where_a_trunk_takes_time() -> None:
    nodes = [f"nodes.{name}={{zone: north}}" for name in addressed("contmec").nodes]
    assert links.limited(addressed("contmec", "zones={north: {delay: 0.001}}", *nodes).scenario)
    assert not links.limited(addressed("contmec", "zones={north: {}}", *nodes).scenario)


def test_a_trunk_that_others_can_fill_is_no_place_for_a_promise(stations: Scenario) -> None:
    # All of the north's links are three times as fast as its trunk; the south's one link is slower than its.
    assert list(links.contested(stations)) == ["north"]
    wide = addressed(STATIONS, "zones.north.rate=3G").scenario
    assert list(links.contested(wide)) == []
    assert enforcements.shall_hold(wide)
    assert not enforcements.shall_hold(stations)


def test_every_rate_of_a_link_is_scaled() -> None:
    tenth = addressed(STATIONS, scale=0.1).scenario
    assert [zone.rate for zone in tenth.zones.values()] == [10**8, 5 * 10**7]
    assert tenth.nodes["worker-03"].rate == 4 * 10**7
    assert tenth.nodes["worker-01"].rate is None
    assert tenth.zones["north"].delay == 0.0025
