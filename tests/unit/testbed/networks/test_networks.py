"""Rendering, without privileges: the text that ``ip``, ``bridge``, ``tc`` and ``nft`` are given."""

import pytest

from testbed.networks import containers, underlay
from testbed.networks.vxlan import Overlay
from testbed.scenario import load
from testbed.scenario.addressing import Addressing
from tests.paths import ROOT

SCENARIOS = ROOT / "scenarios"

MACHINES = {"master-01": 104, "master-02": 103, "worker-01": 102, "worker-02": 101}


@pytest.fixture
def contmec() -> Addressing:
    return contmec_with()


def contmec_with(*overrides: str) -> Addressing:
    return Addressing(load(SCENARIOS / "contmec.yaml", overrides))


def links(addressing: Addressing, node: str) -> str:
    """Return what all clusters of a node make there."""
    return "".join(Overlay(addressing, cluster).links(node) for cluster in addressing.clusters_of(node))


def forwarding(addressing: Addressing, node: str) -> str:
    return "".join(Overlay(addressing, cluster).forwarding(node) for cluster in addressing.clusters_of(node))


def test_routes_of_the_papers_figure_6(contmec: Addressing) -> None:
    lines = links(contmec, "worker-01").splitlines()
    assert "route add 172.16.2.0/24 via 172.16.2.0 dev flannel.1 onlink" in lines
    assert "route add 172.17.2.0/24 via 172.17.2.0 dev flannel.2 onlink" in lines
    # Three entries for each remote node of each cluster: here two remote nodes, two clusters.
    assert sum(line.startswith("route add") for line in lines) == 4
    assert sum(line.startswith("neighbour add") for line in lines) == 4
    assert len(forwarding(contmec, "worker-01").splitlines()) == 4


def test_a_master_knows_only_its_own_cluster(contmec: Addressing) -> None:
    assert contmec.clusters_of("master-01") == ["a"]
    assert "flannel.2" not in links(contmec, "master-01")


def test_neighbour_and_forwarding_agree_on_the_remote_vtep(contmec: Addressing) -> None:
    mac = Overlay(contmec, "a").mac("worker-02")
    assert f"neighbour add 172.16.2.0 lladdr {mac}" in links(contmec, "worker-01")
    assert f"fdb add {mac} dev flannel.1 dst 192.168.56.14" in forwarding(contmec, "worker-01")
    assert f"link add flannel.1 address {mac}" in links(contmec, "worker-02")


def test_machines_keep_their_own_addresses_and_interfaces() -> None:
    own = [f"nodes.{name}={{address: 192.168.56.{host}, uplink: ens5}}" for name, host in MACHINES.items()]
    addressing = contmec_with(*own)
    assert str(addressing.nodes["master-01"]) == "192.168.56.104/24"
    assert "dev ens5 local 192.168.56.102 " in links(addressing, "worker-01")
    assert "dst 192.168.56.101 self" in forwarding(addressing, "worker-01")
    assert "peer name ens5 " in underlay.render_switch(addressing, dict.fromkeys(addressing.nodes, "/run/x"))
    assert "dev ens5\n" in underlay.render_uplink(addressing, "worker-01")


def test_mtu_follows_the_underlay(contmec: Addressing) -> None:
    assert contmec.pod_mtu("a") == 1450
    assert "FLANNEL_MTU=1450\n" in Overlay(contmec, "a").subnet_env("worker-01")
    assert "FLANNEL_SUBNET=172.16.1.1/24\n" in Overlay(contmec, "a").subnet_env("worker-01")
    jumbo = contmec_with("underlay.mtu=9000")
    assert "mtu 8950 type vxlan" in links(jumbo, "worker-01")


def test_an_underlay_without_a_rate_has_no_qdiscs(contmec: Addressing) -> None:
    assert underlay.render_rates(contmec.scenario) == ""
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
    addressing = contmec_with(*overrides, "pods.A-3.node=worker-03")
    rates = underlay.render_rates(addressing.scenario).splitlines()
    links = underlay.render_switch(addressing, dict.fromkeys(addressing.nodes, "/run/x"))
    ports = dict(zip(addressing.nodes, range(5), strict=True))
    for node, index in ports.items():
        both = node == "worker-01"
        assert any(f"dev port{index}-in root tbf rate 9000000000bit" in line for line in rates) == both
        assert any(f"redirect dev port{index}-in" in line for line in rates) == both
        assert (f"link add port{index}-in " in links) == both


def test_published_ports_lead_to_the_containers_of_the_node(contmec: Addressing) -> None:
    receiving = containers.render_translation(contmec, "worker-02")
    assert "tcp dport 5204 dnat to 172.18.0.2:5204" in receiving
    assert "dnat" not in containers.render_translation(contmec, "worker-01")
    assert 'oifname != "docker0" masquerade' in receiving


def test_addresses_start_low_in_a_small_underlay() -> None:
    addressing = contmec_with("underlay.cidr=10.0.0.0/29")
    assert [str(address) for address in addressing.nodes.values()] == [
        "10.0.0.1/29",
        "10.0.0.2/29",
        "10.0.0.3/29",
        "10.0.0.4/29",
    ]
