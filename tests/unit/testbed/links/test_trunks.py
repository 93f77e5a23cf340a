"""Switches, trunks and their queues, as ``ip`` and ``tc`` are given them."""

from __future__ import annotations

import pytest

from testbed.links import trunks, underlay
from testbed.links.trunks import NETEM, RELAY, Cable, Trunk
from testbed.scenario.addressing import Addressing
from testbed.scenario.model import Zone
from tests.unit.testbed.builders import addressed

DELAYED = Zone(rate=10**9, delay=0.005)


def trunk(settings: Zone) -> Trunk:
    return Trunk("north", 0, settings, 1500, "switch")


def stations(*overrides: str) -> tuple[Addressing, dict[Trunk, Cable]]:
    addressing = addressed("examples/two-stations", *overrides)
    return addressing, dict.fromkeys(trunks.trunks(addressing.scenario, underlay.SWITCH), RELAY)


def test_every_node_is_plugged_into_the_switch_of_its_zone() -> None:
    addressing, made = stations()
    lines = underlay.render_switch(addressing, dict.fromkeys(addressing.nodes, "/run/x"), made).splitlines()
    for switch in ("switch", "zone0", "zone1"):
        assert f"link add {switch} type bridge" in lines
        assert f"link set {switch} up" in lines
    plugged = [line.split()[2:5:2] for line in lines if " master " in line]
    assert plugged == [
        ["trunk0", "zone0"],
        ["trunk0-core", "switch"],
        ["trunk1", "zone1"],
        ["trunk1-core", "switch"],
        ["port0", "zone0"],
        ["port1", "zone0"],
        ["port2", "zone0"],
        ["port3", "zone1"],
    ]


def test_names_fit_an_interface_whatever_the_zones_are_called() -> None:
    last = Trunk("the-longest-name-a-zone-can-have-x", 999, DELAYED, 1500, "switch")
    assert max(len(name) for name in (last.near, last.far, last.switch)) <= 15


def test_a_node_s_own_rate_is_that_of_its_cable() -> None:
    addressing, made = stations()
    rates = underlay.render_rates(addressing, made).splitlines()
    assert any(line.startswith("qdisc add dev port3 root tbf rate 400000000bit ") for line in rates)
    assert any(line.startswith("qdisc add dev port2 root tbf rate 1000000000bit ") for line in rates)


def test_what_a_node_sends_to_a_faster_one_is_shaped_at_its_own_port() -> None:
    addressing, made = stations()
    rates = underlay.render_rates(addressing, made)
    # worker-03 sends to worker-01 alone, whose link is faster; worker-02 sends nothing.
    assert "qdisc add dev port3-in root tbf rate 400000000bit " in rates
    assert "port2-in" not in rates


def test_a_trunk_without_a_delay_is_a_cable() -> None:
    cable = Cable()
    assert cable.links(trunk(Zone())) == ["link add trunk0 mtu 1500 type veth peer name trunk0-core mtu 1500"]
    assert cable.queues(trunk(Zone())) == []


def test_a_trunk_s_rate_is_at_both_ends() -> None:
    for means in (Cable(), RELAY):
        assert means.queues(trunk(DELAYED)) == [
            f"qdisc add dev {end} root tbf rate 1000000000bit burst 625000 limit 1875000"
            for end in ("trunk0", "trunk0-core")
        ]


def test_a_relay_stands_between_two_tap_devices() -> None:
    assert RELAY.links(trunk(DELAYED)) == [
        "tuntap add dev trunk0 mode tap vnet_hdr",
        "link set trunk0 mtu 1500 txqueuelen 2000",
        "tuntap add dev trunk0-core mode tap vnet_hdr",
        "link set trunk0-core mtu 1500 txqueuelen 2000",
    ]


def test_netem_delays_first_and_then_comes_the_rate() -> None:
    assert NETEM.queues(trunk(DELAYED)) == [
        line
        for end in ("trunk0", "trunk0-core")
        for line in (
            f"qdisc add dev {end} root handle 1: netem limit 10000 delay 5000us",
            f"qdisc add dev {end} parent 1:1 handle 2: tbf rate 1000000000bit burst 625000 limit 1875000",
        )
    ]
    assert NETEM.links(trunk(DELAYED)) == Cable().links(trunk(DELAYED))


def test_netem_can_also_vary_lose_and_reorder() -> None:
    settings = Zone(delay=0.02, jitter=0.0005, loss=0.001, reorder=0.25)
    first, second = NETEM.queues(trunk(settings))
    words = "netem limit 400391 delay 20000us 500us reorder 25% loss 0.1%"
    assert first == f"qdisc add dev trunk0 root handle 1: {words}"
    assert second == f"qdisc add dev trunk0-core root handle 1: {words}"


def test_loss_needs_no_delay() -> None:
    assert NETEM.queues(trunk(Zone(loss=0.01)))[0].endswith("netem limit 10000 loss 1%")


@pytest.mark.parametrize(
    ("settings", "able"),
    [
        (Zone(), "cable netem relay"),
        (Zone(rate=10**9), "cable netem relay"),
        (DELAYED, "netem relay"),
        (Zone(delay=0.01, jitter=0.001), "netem"),
        (Zone(loss=0.1), "netem"),
        (Zone(delay=0.01, reorder=0.1), "netem"),
    ],
)
def test_each_means_knows_what_it_can_do(settings: Zone, able: str) -> None:
    known: dict[str, Cable] = {"cable": Cable(), "netem": NETEM, "relay": RELAY}
    assert " ".join(name for name, means in known.items() if means.suits(settings)) == able


def test_a_relay_holds_at_least_what_a_delay_holds_and_no_more_than_twice_that() -> None:
    room = trunks.held(Zone(rate=10**9, delay=0.1))
    assert 12_500_000 < room < 2 * 12_500_000 + 2**22 + 1
    assert trunks.held(Zone(delay=0.001)) < 10**7
