"""Rendering, without privileges: the text that ``ip``, ``bridge``, ``tc`` and ``nft`` are given."""

import pytest

from testbed.networks import containers, underlay, vxlan
from testbed.scenario import Scenario, addressing, load
from tests.paths import ROOT

SCENARIOS = ROOT / "scenarios"

MACHINES = {"master-01": 104, "master-02": 103, "worker-01": 102, "worker-02": 101}


@pytest.fixture
def contmec() -> Scenario:
    return load(SCENARIOS / "contmec.yaml")


def test_routes_of_the_papers_figure_6(contmec: Scenario) -> None:
    links = vxlan.render_links(contmec, "worker-01").splitlines()
    assert "route add 172.16.2.0/24 via 172.16.2.0 dev flannel.1 onlink" in links
    assert "route add 172.17.2.0/24 via 172.17.2.0 dev flannel.2 onlink" in links
    # Three entries for each remote node of each cluster: here two remote nodes, two clusters.
    assert sum(line.startswith("route add") for line in links) == 4
    assert sum(line.startswith("neighbour add") for line in links) == 4
    assert len(vxlan.render_forwarding(contmec, "worker-01").splitlines()) == 4


def test_a_master_knows_only_its_own_cluster(contmec: Scenario) -> None:
    assert addressing.clusters_of(contmec, "master-01") == ["a"]
    assert "flannel.2" not in vxlan.render_links(contmec, "master-01")


def test_neighbour_and_forwarding_agree_on_the_remote_vtep(contmec: Scenario) -> None:
    mac = vxlan.vtep_mac(contmec, "a", "worker-02")
    assert f"neighbour add 172.16.2.0 lladdr {mac}" in vxlan.render_links(contmec, "worker-01")
    assert f"fdb add {mac} dev flannel.1 dst 192.168.56.14" in vxlan.render_forwarding(contmec, "worker-01")
    assert f"link add flannel.1 address {mac}" in vxlan.render_links(contmec, "worker-02")


def test_machines_keep_their_own_addresses_and_interfaces() -> None:
    own = [f"nodes.{name}={{address: 192.168.56.{host}, uplink: ens5}}" for name, host in MACHINES.items()]
    scenario = load(SCENARIOS / "contmec.yaml", own)
    assert str(addressing.addresses(scenario)["master-01"]) == "192.168.56.104/24"
    links = vxlan.render_links(scenario, "worker-01")
    assert "dev ens5 local 192.168.56.102 " in links
    assert "dst 192.168.56.101 self" in vxlan.render_forwarding(scenario, "worker-01")
    assert "peer name ens5 " in underlay.render_switch(scenario, dict.fromkeys(scenario.nodes, "/run/x"))
    assert "dev ens5\n" in underlay.render_uplink(scenario, "worker-01")


def test_mtu_follows_the_underlay(contmec: Scenario) -> None:
    assert addressing.pod_mtu(contmec) == 1450
    assert "FLANNEL_MTU=1450\n" in vxlan.render_subnet_file(contmec, "a", "worker-01")
    assert "FLANNEL_SUBNET=172.16.1.1/24\n" in vxlan.render_subnet_file(contmec, "a", "worker-01")
    jumbo = load(SCENARIOS / "contmec.yaml", ["underlay.mtu=9000"])
    assert "mtu 8950 type vxlan" in vxlan.render_links(jumbo, "worker-01")


def test_an_underlay_without_a_rate_has_no_qdiscs(contmec: Scenario) -> None:
    assert underlay.render_rates(contmec) == ""
    assert "ifb" not in underlay.render_switch(contmec, dict.fromkeys(contmec.nodes, "/run/x"))


def test_an_underlay_with_a_rate_shapes_what_goes_to_every_node() -> None:
    scenario = load(SCENARIOS / "contmec.yaml", ["underlay.rate=9G"])
    rates = underlay.render_rates(scenario).splitlines()
    assert len(rates) == 4
    for index in range(4):
        assert sum(f"dev port{index} root tbf rate 9000000000bit" in line for line in rates) == 1


def test_what_comes_from_a_node_is_shaped_if_it_goes_to_several() -> None:
    overrides = [
        "underlay.rate=9G",
        "nodes.worker-03={}",
        "clusters.a.workers=[worker-01, worker-02, worker-03]",
    ]
    scenario = load(SCENARIOS / "contmec.yaml", [*overrides, "pods.A-3.node=worker-03"])
    rates = underlay.render_rates(scenario).splitlines()
    links = underlay.render_switch(scenario, dict.fromkeys(scenario.nodes, "/run/x"))
    ports = dict(zip(scenario.nodes, range(5), strict=True))
    for node, index in ports.items():
        both = node == "worker-01"
        assert any(f"dev port{index}-in root tbf rate 9000000000bit" in line for line in rates) == both
        assert any(f"redirect dev port{index}-in" in line for line in rates) == both
        assert (f"link add port{index}-in " in links) == both


def test_published_ports_lead_to_the_containers_of_the_node(contmec: Scenario) -> None:
    receiving = containers.render_translation(contmec, "worker-02")
    assert "tcp dport 5204 dnat to 172.18.0.2:5204" in receiving
    assert "dnat" not in containers.render_translation(contmec, "worker-01")
    assert 'oifname != "docker0" masquerade' in receiving


def test_addresses_start_low_in_a_small_underlay() -> None:
    scenario = load(SCENARIOS / "contmec.yaml", ["underlay.cidr=10.0.0.0/29"])
    assert [str(address) for address in addressing.addresses(scenario).values()] == [
        "10.0.0.1/29",
        "10.0.0.2/29",
        "10.0.0.3/29",
        "10.0.0.4/29",
    ]
