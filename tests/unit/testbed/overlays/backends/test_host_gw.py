"""What flannel's host-gw backend writes of a cluster's nodes."""

from __future__ import annotations

from testbed.overlays.backends.host_gw import Gateways
from testbed.scenario.addressing import Addressing
from tests.unit.testbed.builders import addressed


def test_the_other_nodes_are_the_gateways(contmec: Addressing) -> None:
    assert Gateways(contmec, "a").links("worker-01") == (
        "route add 172.16.0.0/24 via 192.168.56.11 dev eth0\n"
        "route add 172.16.2.0/24 via 192.168.56.14 dev eth0\n"
    )


def test_nothing_else_is_made(contmec: Addressing) -> None:
    routed = Gateways(contmec, "a")
    assert routed.forwarding("worker-01") == ""
    assert (routed.devices("worker-01"), routed.daemons("worker-01"), routed.features()) == ([], [], [])


def test_pods_have_the_whole_mtu_and_plugins_are_told() -> None:
    addressing = addressed("contmec", "clusters.a.backend=host-gw")
    assert [addressing.pod_mtu(name) for name in ("a", "b")] == [1500, 1450]
    (text,) = Gateways(addressing, "a").files("worker-01").values()
    assert "FLANNEL_MTU=1500\n" in text


def test_every_route_is_wanted(contmec: Addressing) -> None:
    assert list(Gateways(contmec, "b").wanted("worker-02", {})) == [
        "a route to 172.17.0.0/24 via 192.168.56.12 on eth0",
        "a route to 172.17.1.0/24 via 192.168.56.13 on eth0",
    ]
