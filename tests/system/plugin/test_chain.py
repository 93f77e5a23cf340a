"""Behind another plugin: shaping only, and that plugin's interface stays that plugin's."""

from __future__ import annotations

from typing import Any

import pytest

from tests.system.plugin.conftest import REFERENCE, Node, promising

pytestmark = pytest.mark.skipif(
    not all((REFERENCE / name).exists() for name in ("ptp", "host-local")),
    reason=f"ptp and host-local are not in {REFERENCE} (Debian: containernetworking-plugins)",
)

PTP: dict[str, Any] = {
    "cniVersion": "1.0.0",
    "name": "cluster-a",
    "type": "ptp",
    "mtu": 1450,
    "ipam": {
        "type": "host-local",
        "subnet": "172.16.1.0/24",
        "dataDir": "/run/host-local",
        "routes": [{"dst": "0.0.0.0/0"}],
    },
}


def chained(previous: dict[str, Any], guarantee: str = "1G") -> dict[str, Any]:
    return promising(guarantee, cniVersion="1.0.0", subnet=None, prevResult=previous)


def attach(node: Node) -> dict[str, Any]:
    node.add_pod_namespace("A-1")
    return node.call("ADD", "A-1", PTP, plugin=REFERENCE / "ptp")


def qdisc(node: Node) -> str:
    (shown,) = node.show("tc", "-j", "qdisc", "show", "dev", "eth0", pod="A-1")
    kind: str = shown["kind"]
    return kind


def routes(node: Node) -> list[dict[str, Any]]:
    """But for their flags: the kernel looks at a link's carrier when it comes to it."""
    return [{**route, "flags": None} for route in node.show("ip", "-j", "route", pod="A-1")]


def test_the_interface_is_shaped_and_the_result_passed_on(node: Node) -> None:
    previous = attach(node)
    assert node.call("ADD", "A-1", chained(previous)) == previous
    assert "rate 1Gbit ceil 1Gbit" in node.in_pod("A-1", "tc", "class", "show", "dev", "eth0")
    assert node.call("CHECK", "A-1", chained(previous)) == {}
    assert node.call("CHECK", "A-1", PTP | {"prevResult": previous}, plugin=REFERENCE / "ptp") == {}
    node.in_pod("A-1", "tc", "qdisc", "delete", "dev", "eth0", "root")
    assert node.call("CHECK", "A-1", chained(previous))["code"] == 104


def test_del_undoes_the_shaping_and_nothing_else(node: Node) -> None:
    previous = attach(node)
    node.call("ADD", "A-1", chained(previous))
    before = routes(node)
    for _ in range(2):
        assert node.call("DEL", "A-1", chained(previous)) == {}
        assert qdisc(node) == "noqueue"
    assert routes(node) == before
    assert node.leases("cluster-a") == []
    assert node.call("DEL", "A-1", PTP | {"prevResult": previous}, plugin=REFERENCE / "ptp") == {}
    assert node.veths() == set()


def test_del_gives_a_slow_pod_s_interface_its_large_packets_back(node: Node) -> None:
    previous = attach(node)
    sizes = []
    for command in ("ADD", "DEL"):
        node.call(command, "A-1", chained(previous, "20M"))
        (shown,) = node.show("ip", "-d", "-j", "link", "show", "dev", "eth0", pod="A-1")
        sizes.append(shown["gso_max_size"])
    assert sizes == [5000, 65536]


def test_del_succeeds_when_the_interface_or_the_namespace_is_gone(node: Node) -> None:
    previous = attach(node)
    node.call("ADD", "A-1", chained(previous))
    node.in_pod("A-1", "ip", "link", "delete", "dev", "eth0")
    assert node.call("DEL", "A-1", chained(previous)) == {}
    node.run("ip", "netns", "delete", "A-1")
    assert node.call("DEL", "A-1", chained(previous)) == {}
    assert node.leases("cluster-a") == []


def test_anothers_qdisc_is_an_error_and_stays(node: Node) -> None:
    previous = attach(node)
    node.in_pod("A-1", "tc", "qdisc", "add", "dev", "eth0", "root", "handle", "1:", "htb", "default", "1")
    assert node.call("ADD", "A-1", chained(previous))["code"] == 101
    assert qdisc(node) == "htb"
    assert node.leases("cluster-a") == []


def test_gc_drops_the_leases_of_pods_that_are_gone(node: Node) -> None:
    previous = attach(node)
    node.call("ADD", "A-1", chained(previous))
    node.run("ip", "netns", "delete", "A-1")
    network = {**promising(subnet=None), "cni.dev/valid-attachments": []}
    assert node.call("GC", "", network) == {}
    assert node.leases("cluster-a") == []
