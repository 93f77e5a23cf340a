"""A pod with a further interface is no router into that network, unless its definition makes it one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import waiting
from tests.system.plugin.conftest import REFERENCE, Document, Node
from tests.system.plugin.segment_lab import DEVICE, MACVLAN, Lab

pytestmark = pytest.mark.skipif(
    not all((REFERENCE / name).exists() for name in ("macvlan", "static", "tuning")),
    reason="containernetworking-plugins are not installed",
)
SEND = str(Path(__file__).with_name("send.py"))
DEVICE_6 = "fd00:17::120"
STRANGER, STRANGER_6 = "172.16.1.8", "fd00:16::8"
RELAY, RELAY_6 = "172.17.16.9", "fd00:17::9"
ASKED = [{"name": "macvlan-conf", "ips": [f"{RELAY}/24"]}]
# At the device: where datagrams come from.
COUNT = """\
table inet seen {
    set senders { type ipv4_addr; flags dynamic; }
    set senders6 { type ipv6_addr; flags dynamic; }
    chain prerouting {
        type filter hook prerouting priority 0;
        meta l4proto udp add @senders { ip saddr }
        meta l4proto udp add @senders6 { ip6 saddr }
    }
}
"""
# A pod whose first interface a stranger shares, who sends what is for the device to it.
NEIGHBOURS = f"""\
link add eth0 netns relay type veth peer name eth0 netns stranger
netns exec relay ip addr add 172.16.1.9/24 dev eth0
netns exec relay ip addr add fd00:16::9/64 dev eth0 nodad
netns exec relay ip link set eth0 up
netns exec stranger ip addr add {STRANGER}/24 dev eth0
netns exec stranger ip addr add {STRANGER_6}/64 dev eth0 nodad
netns exec stranger ip link set eth0 up
netns exec stranger ip route add {DEVICE} via 172.16.1.9
netns exec stranger ip -6 route add {DEVICE_6} via fd00:16::9
netns exec device ip addr add {DEVICE_6}/64 dev eth0 nodad
"""
SWITCHES = ("net.ipv4.conf.{}.forwarding", "net.ipv6.conf.{}.forwarding")
FIRST = {
    "cniVersion": "1.1.0",
    "interfaces": [{"name": "eth0", "sandbox": "/run/netns/relay"}],
    "ips": [{"address": "172.16.1.9/24", "interface": 0}],
}


@pytest.fixture
def lab(node: Node) -> Lab:
    made = Lab(node)
    node.add_pod_namespace("relay", "stranger")
    node.run("ip", "-batch", "-", stdin=NEIGHBOURS)
    node.in_pod("device", "nft", "-f", "-", stdin=COUNT)
    for switch in SWITCHES:  # as a new namespace has it where its machine forwards
        node.in_pod("relay", "sysctl", "-qw", f"{switch.format('all')}=1")
    return made


def attach(lab: Lab) -> Document:
    result = lab.call("ADD", "relay", ASKED, FIRST)
    assert "interfaces" in result, result
    lab.node.in_pod("relay", "ip", "addr", "add", f"{RELAY_6}/64", "dev", "net1", "nodad")
    return result


def reached_by(lab: Lab) -> set[str]:
    """Whose datagrams the device gets, when the stranger sends first, and then the pod itself."""
    for pod in ("stranger", "relay"):
        for to in (DEVICE, DEVICE_6):
            lab.node.in_pod(pod, "/usr/bin/python3", SEND, json.dumps({"to": to, "port": 9, "count": 3}))
    waiting.until(lambda: {RELAY, RELAY_6} <= seen(lab))
    return seen(lab)


def seen(lab: Lab) -> set[str]:
    shown = lab.node.show("nft", "-j", "list", "table", "inet", "seen", pod="device")["nftables"]
    return {address for entry in shown for address in entry.get("set", {}).get("elem", ())}


def forwarding(lab: Lab, interface: str) -> list[Any]:
    shown = (lab.node.in_pod("relay", "sysctl", "-n", switch.format(interface)) for switch in SWITCHES)
    return [int(value) for value in shown]


def test_what_a_stranger_sends_to_the_pod_does_not_get_into_its_other_network(lab: Lab) -> None:
    result = attach(lab)
    assert reached_by(lab) == {RELAY, RELAY_6}
    assert forwarding(lab, "all") == forwarding(lab, "default") == forwarding(lab, "net1") == [0, 0]
    assert lab.call("CHECK", "relay", ASKED, result) == {}
    for switch in SWITCHES:
        name = switch.format("eth0")
        lab.node.in_pod("relay", "sysctl", "-qw", f"{name}=1")
        answer = lab.call("CHECK", "relay", ASKED, result)
        assert (answer["code"], answer["msg"]) == (104, f"{name} of the pod is 1")
        lab.node.in_pod("relay", "sysctl", "-qw", f"{name}=0")
    for _ in range(2):
        assert lab.call("DEL", "relay", ASKED, result) == {}
        assert forwarding(lab, "all") == forwarding(lab, "eth0") == [1, 1]


def test_a_definition_that_says_so_makes_a_router(lab: Lab) -> None:
    on = {switch.format("all"): "1" for switch in SWITCHES}
    plugins = [MACVLAN, {"type": "tuning", "sysctl": on}]
    lab.define("macvlan-conf", {"cniVersion": "1.0.0", "name": "macvlan-conf", "plugins": plugins})
    result = attach(lab)
    assert reached_by(lab) == {STRANGER, STRANGER_6, RELAY, RELAY_6}
    assert lab.call("CHECK", "relay", ASKED, result) == {}


def test_what_was_switched_is_as_before_when_a_network_fails(lab: Lab) -> None:
    lab.define("macvlan-conf", {**MACVLAN, "master": "nowhere"})
    lab.node.in_pod("relay", "sysctl", "-qw", "net.ipv4.conf.lo.forwarding=0")
    assert "code" in lab.call("ADD", "relay", ASKED, FIRST)
    assert (forwarding(lab, "all"), forwarding(lab, "eth0"), forwarding(lab, "lo")) == (
        [1, 1],
        [1, 1],
        [0, 1],
    )
