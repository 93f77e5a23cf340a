"""What flannel's vxlan backend writes of a cluster's nodes, as ``ip`` and ``bridge`` are given it."""

from __future__ import annotations

from testbed.overlays.backends.vxlan import Overlay
from testbed.scenario.addressing import Addressing
from tests.unit.testbed.builders import addressed


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


def test_no_node_has_entries_for_itself(contmec: Addressing) -> None:
    own = Overlay(contmec, "a").mac("worker-01")
    assert links(contmec, "worker-01").count(own) == 1  # its VTEP
    assert own not in forwarding(contmec, "worker-01")


def test_machines_keep_their_own_addresses_and_interfaces(contmec_on_machines: Addressing) -> None:
    assert "dev ens5 local 192.168.56.102 " in links(contmec_on_machines, "worker-01")
    assert "dst 192.168.56.101 self" in forwarding(contmec_on_machines, "worker-01")


def test_mtu_follows_the_underlay(contmec: Addressing) -> None:
    assert contmec.pod_mtu("a") == 1450
    assert "FLANNEL_MTU=1450\n" in Overlay(contmec, "a").subnet_env("worker-01")
    assert "mtu 8950 type vxlan" in links(addressed("contmec", "underlay.mtu=9000"), "worker-01")


def test_each_cluster_tells_plugins_of_its_subnet_in_a_file_of_its_own(contmec: Addressing) -> None:
    (file, text), *others = Overlay(contmec, "a").files("worker-01").items()
    assert others == []
    assert file == "/run/flannel/subnet-a.env"
    assert "FLANNEL_SUBNET=172.16.1.1/24\n" in text


def test_what_is_on_a_node_afterwards_is_the_clusters_own(contmec: Addressing) -> None:
    overlay = Overlay(contmec, "b")
    assert overlay.devices("worker-02") == ["flannel.2"]
    assert [str(route) for route in overlay.routes("worker-02")] == ["172.17.0.0/16"]
