"""The switch and its cables, as ``ip`` and ``tc`` are given them."""

from __future__ import annotations

from testbed.links import underlay
from testbed.scenario.addressing import Addressing
from tests.unit.testbed.builders import addressed


def switch(addressing: Addressing) -> str:
    return underlay.render_switch(addressing, dict.fromkeys(addressing.nodes, "/run/x"), {})


def test_every_node_has_a_cable_to_the_switch(contmec: Addressing) -> None:
    lines = switch(contmec).splitlines()
    for index in range(4):
        end = f"peer name eth0 address 02:00:c0:a8:38:{11 + index:02x} mtu 1500 netns /run/x"
        assert f"link add port{index} mtu 1500 type veth {end}" in lines
        assert f"link set port{index} addrgenmode none" in lines


def test_machines_keep_their_own_addresses_and_interfaces(contmec_on_machines: Addressing) -> None:
    assert "peer name ens5 " in switch(contmec_on_machines)
    end = underlay.render_uplink(contmec_on_machines, "worker-01")
    assert "address add 192.168.56.102/24 broadcast + dev ens5\n" in end


def test_an_underlay_without_a_rate_has_no_qdiscs(contmec: Addressing) -> None:
    assert underlay.render_rates(contmec, {}) == ""
    assert "ifb" not in switch(contmec)


def test_an_underlay_with_a_rate_shapes_what_goes_to_every_node() -> None:
    rates = underlay.render_rates(addressed("contmec", "underlay.rate=9G"), {}).splitlines()
    assert len(rates) == 4
    for index in range(4):
        assert sum(f"dev port{index} root tbf rate 9000000000bit" in line for line in rates) == 1


def test_what_comes_from_a_node_is_shaped_if_it_goes_to_several() -> None:
    overrides = [
        "underlay.rate=9G",
        "nodes.worker-03={}",
        "clusters.a.workers=[worker-01, worker-02, worker-03]",
    ]
    addressing = addressed("contmec", *overrides, "pods.A-3.node=worker-03")
    rates = underlay.render_rates(addressing, {}).splitlines()
    links = switch(addressing)
    ports = dict(zip(addressing.nodes, range(5), strict=True))
    for node, index in ports.items():
        both = node == "worker-01"
        assert any(f"dev port{index}-in root tbf rate 9000000000bit" in line for line in rates) == both
        assert any(f"redirect dev port{index}-in" in line for line in rates) == both
        assert (f"link add port{index}-in " in links) == both
