"""A pod that the kernel makes a device's stand-in: declared ports alone, from the cluster alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import waiting
from tests.system.plugin.conftest import REFERENCE, Document, Node
from tests.system.plugin.segment_lab import DEVICE, FAR, GATEWAY, HERE, Lab

pytestmark = pytest.mark.skipif(
    not all((REFERENCE / name).exists() for name in ("bridge", "host-local")),
    reason="containernetworking-plugins are not installed",
)
SEND = str(Path(__file__).with_name("send.py"))
SERVED = [("tcp", 8554), ("udp", 5004), ("tcp", 8080), ("udp", 9)]
FORWARDS = [
    {"protocol": "TCP", "port": 80, "address": DEVICE, "targetPort": 8554},
    {"protocol": "UDP", "port": 5004, "address": DEVICE},
]
REACH = "concorde.contmec.dev/reach"
# Another segment of the node.
YARD = """\
netns add yard
link add eth9 type veth peer name eth0 netns yard
addr add 172.18.0.1/24 dev eth9
link set eth9 up
netns exec yard ip addr add 172.18.0.2/24 dev eth0
netns exec yard ip link set eth0 up
netns exec yard ip route add default via 172.18.0.1
"""
# At the device: where datagrams come from.
COUNT = """\
table ip seen {
    set senders { type ipv4_addr; flags dynamic; }
    chain prerouting { type filter hook prerouting priority 0; ip protocol udp add @senders { ip saddr }; }
}
"""


@pytest.fixture
def lab(node: Node) -> Iterator[Lab]:
    made = Lab(node)
    made.node.in_pod("device", "nft", "-f", "-", stdin=COUNT)
    with made.serving("device", *SERVED), made.serving("far", ("tcp", 81), ("udp", 81)):
        yield made


def attach(lab: Lab, pod: str, forward: object = None) -> tuple[str, Document]:
    previous = lab.first(pod)
    result = lab.call("ADD", pod, "bridge-conf", previous, forward)
    assert "interfaces" in result, result
    return previous["ips"][0]["address"].partition("/")[0], result


def test_declared_ports_lead_to_the_device_and_nothing_else_does(lab: Lab) -> None:
    proxy, result = attach(lab, "proxy", FORWARDS)
    lab.first("stranger")
    declared = [("tcp", proxy, 80), ("udp", proxy, 5004)]
    hidden = [
        *((kind, DEVICE, port) for kind, port in SERVED),  # by the node's own routing
        *(
            (kind, "10.10.0.2", port) for kind, port in (("tcp", 80), ("udp", 5004))
        ),  # by the proxy's other side
        *((kind, proxy, port) for kind, port in (("tcp", 8554), ("tcp", 8080), ("udp", 9), ("udp", 80))),
    ]
    for place in ("far", "stranger"):
        assert lab.ask(place, declared + hidden, declared) == declared
    # Who sends packets for the device to the proxy finds no router.
    lab.node.in_pod("stranger", "ip", "route", "add", DEVICE, "via", proxy)
    assert lab.ask("stranger", [*declared, *hidden], declared) == declared
    assert lab.call("CHECK", "proxy", "bridge-conf", result, FORWARDS) == {}
    lab.node.in_pod("proxy", "nft", "flush", "ruleset")
    assert lab.call("CHECK", "proxy", "bridge-conf", result, FORWARDS)["code"] == 104
    before = lab.left()
    assert lab.call("DEL", "proxy", "bridge-conf", result, FORWARDS) == {}
    assert (before[2], lab.left()[2]) == (True, False)


@pytest.mark.long(one_in=0)
def test_a_list_that_pods_name_changes_while_they_run(lab: Lab) -> None:
    previous = lab.first("proxy")
    assert lab.call("ADD", "proxy", "bridge-conf", previous, "@cam")["code"] == 11
    lab.forward("cam", FORWARDS[:1])
    result = lab.call("ADD", "proxy", "bridge-conf", previous, "@cam")
    proxy = previous["ips"][0]["address"].partition("/")[0]
    probes = [("tcp", proxy, 80), ("udp", proxy, 5004)]
    assert lab.ask("far", probes, probes[:1]) == probes[:1]
    for forwards, reached in ((FORWARDS, probes), (FORWARDS[1:], probes[1:])):
        lab.forward("cam", forwards)
        assert lab.ask("far", probes, reached) == reached
        assert lab.call("CHECK", "proxy", "bridge-conf", result, "@cam") == {}
    assert lab.call("DEL", "proxy", "bridge-conf", result, "@cam") == {}
    assert not lab.left()[2]


@pytest.mark.long(one_in=0)
def test_a_pod_that_relays_gets_no_farther_than_it_says(lab: Lab) -> None:
    lab.node.run("ip", "-batch", "-", stdin=YARD)
    previous, declared = lab.first("relay"), json.dumps([{"port": 8554, "address": DEVICE}])
    result = lab.call("ADD", "relay", "bridge-conf", previous, promises={REACH: declared})
    assert "interfaces" in result, result
    assert "dev net1" in lab.node.in_pod("relay", "ip", "route", "get", DEVICE)
    reached, others = ("tcp", DEVICE, 8554), [("tcp", DEVICE, 8080), ("udp", DEVICE, 5004)]
    lab.node.in_pod("relay", "ip", "route", "add", "172.18.0.2", "via", "10.10.0.1")
    with lab.serving("yard", ("tcp", 8554)):
        beyond = ("tcp", "172.18.0.2", 8554)
        assert lab.ask("", [beyond], [beyond]) == [beyond]
        assert lab.ask("relay", [reached, beyond, *others], [reached]) == [reached]
    wrong = lab.call("ADD", "other", "bridge-conf", lab.first("other"), promises={REACH: "[7]"})
    assert (wrong["code"], f'["{REACH}"][0]: 7 ' in wrong["msg"]) == (7, True), wrong
    assert lab.call("DEL", "relay", "bridge-conf", result) == {}


def test_what_the_device_begins_and_what_a_proxy_is_up_to_gets_nowhere(lab: Lab) -> None:
    proxy, _ = attach(lab, "proxy", FORWARDS)
    relay, _ = attach(lab, "relay")
    with lab.serving("relay", ("tcp", 82)), lab.serving("", ("tcp", 83)):
        begun = [
            ("tcp", FAR, 81),
            ("udp", FAR, 81),
            ("tcp", proxy, 80),
            ("tcp", relay, 82),
            ("tcp", HERE, 83),
        ]
        lab.node.in_pod("device", "ip", "route", "add", "10.10.0.0/24", "via", GATEWAY)
        assert lab.ask("device", [*begun, ("tcp", GATEWAY, 83), ("tcp", "10.10.0.3", 82)]) == []
        # As if its containers had been taken over, and had the rights that they do not have.
        for pod in ("proxy", "relay"):
            lab.node.in_pod(pod, "ip", "route", "delete", "default", "dev", "eth0")
            lab.node.in_pod(pod, "ip", "route", "replace", FAR, "via", "10.10.0.1", "dev", "net1")
        assert lab.ask("proxy", [("tcp", FAR, 81), ("tcp", DEVICE, 8080), ("tcp", "10.10.0.1", 83)]) == []
        reached = [("tcp", DEVICE, 8080)]
        assert lab.ask("relay", [*reached, ("tcp", FAR, 81), ("tcp", "10.10.0.1", 83)], reached) == reached
    own = "10.10.0.3"  # that of the relay, the last to be sent, by the same links as the others
    for pod, source in (("proxy", "10.10.0.99"), ("relay", proxy), ("relay", "10.10.0.99"), ("relay", own)):
        spec = {"to": DEVICE, "port": 9, "count": 3, "size": 100, "forged": source}
        lab.node.in_pod(pod, "/usr/bin/python3", SEND, json.dumps(spec))
    waiting.until(lambda: own in seen(lab))
    assert seen(lab) <= {GATEWAY, own}


def seen(lab: Lab) -> set[str]:
    shown = lab.node.show("nft", "-j", "list", "set", "ip", "seen", "senders", pod="device")["nftables"]
    return {address for entry in shown for address in entry.get("set", {}).get("elem", ())}
