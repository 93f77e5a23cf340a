"""What flannel's ipip backend writes of a cluster's nodes, and how a kernel shows it that has it."""

from __future__ import annotations

import pytest

from testbed.overlays import kernel_state
from testbed.overlays.backends.ipip import Tunnels
from testbed.runtime import containers
from testbed.scenario import ScenarioError
from tests.doubles import Asked, RecordingNode, in_batch, shown
from tests.unit.testbed.builders import addressed

# As iproute2 6.1 shows such a device of Linux 6.1, Debian 12, a little shortened.
LINK = {
    "ifname": "flannel.ipip",
    "flags": ["NOARP", "UP", "LOWER_UP"],
    "mtu": 1480,
    "link_type": "ipip",
    "address": "192.168.56.13",
    "linkinfo": {
        "info_kind": "ipip",
        "info_data": {"proto": "any", "remote": "any", "local": "192.168.56.13", "ttl": 0, "pmtudisc": True},
    },
    "addr_info": [{"family": "inet", "local": "172.16.1.0", "prefixlen": 32, "scope": "global"}],
}


def test_one_device_leads_to_all_nodes() -> None:
    addressing = addressed("contmec", "clusters.a.backend=ipip")
    assert Tunnels(addressing, "a").links("worker-01") == (
        "link add flannel.ipip mtu 1480 type ipip local 192.168.56.13\n"
        "link set flannel.ipip addrgenmode none\n"
        "link set flannel.ipip up\n"
        "address add 172.16.1.0/32 dev flannel.ipip\n"
        "route add 172.16.0.0/24 via 192.168.56.11 dev flannel.ipip onlink\n"
        "route add 172.16.2.0/24 via 192.168.56.14 dev flannel.ipip onlink\n"
    )
    assert Tunnels(addressing, "a").devices("worker-01") == ["flannel.ipip"]


def test_a_packet_grows_by_one_header() -> None:
    addressing = addressed("contmec", "clusters.a.backend=ipip", "underlay.mtu=9000")
    assert addressing.pod_mtu("a") == 8980
    assert "mtu 8980 type ipip" in Tunnels(addressing, "a").links("worker-01")


def test_what_a_node_has_is_what_is_wanted() -> None:
    network = Tunnels(addressed("contmec", "clusters.a.backend=ipip"), "a")
    routes = [
        {"dst": f"172.16.{subnet}.0/24", "gateway": f"192.168.56.{host}", "dev": "flannel.ipip"}
        for subnet, host in ((0, 11), (2, 14))
    ]

    def tell(asked: Asked) -> object:
        return [LINK] if "address" in asked.argv else routes if "route" in asked.argv else []

    node = RecordingNode(answer=lambda asked: in_batch(asked, lambda one: shown(tell(one))))
    words = kernel_state.look(node, []).facts
    assert [wish for wish in network.wanted("worker-01", {}) if wish not in words] == []


def test_a_kernel_without_it_is_told_its_option() -> None:
    (feature,) = Tunnels(addressed("contmec"), "a").features()
    assert feature.option == "CONFIG_NET_IPIP"
    assert feature.command[:6] == ("ip", "link", "add", "dipip", "type", "ipip")


def test_a_node_has_one_cluster_of_it() -> None:
    with pytest.raises(
        ScenarioError, match=r"clusters\.b\.backend: cluster 'a' shares a node and already has"
    ):
        addressed("contmec", "clusters.a.backend=ipip", "clusters.b.backend=ipip")


def test_its_packets_are_kept_out_of_connection_tracking() -> None:
    addressing = addressed("contmec", "clusters.a.backend=ipip", "clusters.b.backend=host-gw")
    rules = containers.render_translation(addressing, "worker-01")
    assert rules.count("    ip protocol ipip notrack accept\n") == 2
    assert "udp dport" not in rules.partition("chain prerouting")[0]


def test_flannel_knows_it() -> None:
    assert Tunnels(addressed("contmec"), "a").flannel() == {"Type": "ipip"}
