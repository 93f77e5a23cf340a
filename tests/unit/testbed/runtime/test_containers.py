"""The containers' network on a node, as ``ip`` and ``nft`` are given it."""

from __future__ import annotations

from testbed.runtime import containers
from testbed.scenario.addressing import Addressing
from tests.unit.testbed.builders import addressed


def test_published_ports_lead_to_the_containers_of_the_node(contmec: Addressing) -> None:
    receiving = containers.render_translation(contmec, "worker-02")
    assert "tcp dport 5204 dnat to 172.18.0.2:5204" in receiving
    assert "dnat" not in containers.render_translation(contmec, "worker-01")
    assert 'oifname != "docker0" masquerade' in receiving


def test_overlays_and_pods_of_all_clusters_are_not_tracked() -> None:
    addressing = addressed("contmec", "clusters.b.flannel.port=4789")
    rules = containers.render_translation(addressing, "worker-01")
    for match in ("ip saddr 172.16.0.0/16", "ip saddr 172.17.0.0/16", "udp dport 8472", "udp dport 4789"):
        assert rules.count(f"    {match} notrack accept\n") == 2  # what comes in, and what goes out


def test_every_container_of_a_node_is_on_its_bridge() -> None:
    addressing = addressed("contmec", "containers.container-3={node: worker-01}")
    links = containers.render_links(addressing, "worker-01").splitlines()
    assert "address add 172.18.0.1/16 broadcast + dev docker0" in links
    for index, name in enumerate(["container-1", "container-3"]):
        assert f"netns add {name}" in links
        assert f"link set vethc{index} addrgenmode none" in links
    assert "netns add container-2" not in links  # it is on the other worker


def test_a_container_leaves_its_network_by_the_bridge(contmec: Addressing) -> None:
    inside = containers.render_inside(contmec, "container-2")
    assert "address add 172.18.0.2/16 broadcast + dev eth0\n" in inside
    assert "route add default via 172.18.0.1 dev eth0\n" in inside
