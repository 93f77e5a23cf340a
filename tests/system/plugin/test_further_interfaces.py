"""`concorde-networks`: further interfaces by other plugins, all or none, and the cluster within reach."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests import cases
from tests.system.plugin.conftest import GUARANTEE, REFERENCE, Document, Node
from tests.system.plugin.segment_lab import (
    BRIDGE,
    DEFINITIONS,
    FAR,
    ON_SEGMENT,
    OURS,
    Lab,
    others,
)

pytestmark = pytest.mark.skipif(
    not all(
        (REFERENCE / name).exists() for name in ("bridge", "macvlan", "host-device", "host-local", "static")
    ),
    reason="containernetworking-plugins are not installed",
)
KINDS = {
    "bridge": "bridge-conf",
    "macvlan": {"name": "macvlan-conf", "ips": ["172.17.16.9/24"], "mac": "02:00:00:00:00:09"},
    "host-device": "device-conf",
    "ours": "ours",
}
BROKEN = {"type": "macvlan", "master": "nowhere", "ipam": {"type": "static"}, "capabilities": {"ips": True}}


@pytest.fixture
def lab(node: Node) -> Lab:
    return Lab(node)


def named(*kinds: str) -> list[Document]:
    given = [KINDS[kind] for kind in kinds]
    return [one if isinstance(one, dict) else {"name": one} for one in given]


@pytest.mark.long(one_in=0)
def test_the_cluster_stays_reachable_by_eth0_whatever_a_delegate_s_routes_say(lab: Lab) -> None:
    previous = lab.first("A-1")
    address = previous["ips"][0]["address"].partition("/")[0]
    bare = lab.node.call("ADD", "A-1", BRIDGE, plugin=REFERENCE / "bridge", interface="net1")
    assert "code" not in bare, bare
    answers = ("ip", "route", "get", FAR, "from", address)
    assert "dev net1" in lab.node.in_pod("A-1", *answers)  # the trap
    lab.node.call("DEL", "A-1", BRIDGE, plugin=REFERENCE / "bridge", interface="net1")

    result = lab.call("ADD", "A-1", "bridge-conf", previous)
    assert [end["name"] for end in result["interfaces"]] == [
        "cni-a",
        previous["interfaces"][1]["name"],
        "eth0",
        "net1",
    ]
    assert {key: result[key] for key in result if key != "interfaces"} == {
        key: previous[key] for key in previous if key != "interfaces"
    }
    assert lab.call("CHECK", "A-1", "bridge-conf", result) == {}
    for to in (FAR, "10.96.0.1", "192.0.2.1"):
        assert "dev eth0" in lab.node.in_pod("A-1", "ip", "route", "get", to)
    with lab.serving("A-1", ("tcp", 80), ("udp", 80)), lab.serving("far", ("tcp", 81)):
        asked = [("tcp", address, 80), ("udp", address, 80)]
        assert lab.ask("far", asked, asked) == asked
        assert lab.ask("A-1", [("tcp", FAR, 81)], [("tcp", FAR, 81)]) == [("tcp", FAR, 81)]


@pytest.mark.long(one_in=0)
def test_any_plugin_attaches_and_del_needs_no_definition(lab: Lab) -> None:
    previous = lab.first("A-1")
    before = lab.left()
    asked = named(*KINDS)
    result = lab.call("ADD", "A-1", asked, previous)
    assert [end["name"] for end in result["interfaces"][3:]] == ["net1", "net2", "net3", "net4"], result
    addresses = {
        link["ifname"]: [one["local"] for one in link["addr_info"]]
        for link in lab.node.show("ip", "-j", "-4", "addr", pod="A-1")
    }
    assert (addresses["net1"], addresses["net2"], addresses["net4"]) == (
        ["10.10.0.2"],
        ["172.17.16.9"],
        ["172.40.1.2"],
    )
    (shown,) = lab.node.show("ip", "-j", "link", "show", "net2", pod="A-1")
    assert shown["address"] == "02:00:00:00:00:09"
    assert lab.call("CHECK", "A-1", asked, result) == {}
    assert lab.call("ADD", "A-1", asked, previous)["code"] == 103
    lab.node.in_pod("A-1", "ip", "link", "delete", "net2")
    assert lab.call("CHECK", "A-1", asked, result)["code"] == 104
    lab.node.run("rm", "-r", DEFINITIONS)
    for _ in range(2):
        assert lab.call("DEL", "A-1", asked, result) == {}
        assert lab.left() == before


def test_what_was_attached_is_undone_when_one_fails(lab: Lab) -> None:
    lab.define("broken", BROKEN)
    previous = lab.first("A-1")
    before = lab.left()
    refused = lab.call(
        "ADD", "A-1", [*named("bridge", "ours"), {"name": "broken", "ips": ["10.9.9.9/24"]}], previous
    )
    assert refused["msg"].startswith("net3 (default/broken): macvlan: ADD: "), refused
    assert lab.left() == before
    missing = lab.call("ADD", "A-1", "bridge-conf,nowhere/none", previous)
    assert (missing["code"], "nowhere/none" in missing["msg"]) == (11, True), missing
    assert lab.left() == before


@pytest.mark.long(one_in=0)
def test_del_without_a_record_takes_away_what_is_known_otherwise(lab: Lab) -> None:
    previous = lab.first("A-1")
    before = lab.left()
    asked = named("bridge", "host-device")
    result = lab.call("ADD", "A-1", asked, previous)
    lab.node.run("rm", "-r", "/run/concorde-networks/attached")
    for _ in range(2):
        assert lab.call("DEL", "A-1", asked, result) == {}
        assert lab.left() == before
    result = lab.call("ADD", "A-1", named("macvlan"), previous)
    lab.node.run("rm", "-r", "/run/concorde-networks")
    assert lab.call("DEL", "A-1", named("macvlan"), result) == {}
    assert "net1" not in [link["ifname"] for link in lab.node.show("ip", "-j", "link", pod="A-1")]


@pytest.mark.parametrize("verb", ["DEL", "GC"])
@pytest.mark.long(one_in=2)
def test_without_the_namespace_all_else_is_given_back(lab: Lab, verb: str) -> None:
    lab.others("A-1")
    before = lab.left()
    added = lab.call("ADD", "A-1", named("bridge", "ours"), others("A-1"))
    assert len(added["interfaces"]) == 3, added
    lab.node.run("ip", "netns", "delete", "A-1")
    if verb == "DEL":
        assert lab.call("DEL", "A-1", "", {}, netns="") == {}
    else:
        network = {"cniVersion": "1.1.0", "name": "cluster-a", "cni.dev/valid-attachments": []}
        assert lab.node.call("GC", "", network, plugin=lab.plugin) == {}
    assert lab.left() == before


@pytest.mark.long
def test_whatever_fails_and_whoever_is_killed_leases_and_links_are_those_attached(lab: Lab) -> None:
    """CONCORDE_NETWORK_CALLS says how many calls there are."""
    choice = random.Random(cases.seed())
    pods = [f"P-{number}" for number in range(3)]
    lab.others(*pods)
    lab.define("broken", BROKEN)
    lab.define("ours", {**OURS, **ON_SEGMENT})
    first = lab.left()
    whole, attached, happened = lab.plugin, dict[str, list[str]](), Counter[str]()
    for _ in range(cases.count("CONCORDE_NETWORK_CALLS", 2, 1000)):
        pod = choice.choice(pods)
        asked = choice.sample(list(KINDS), choice.randint(1, len(KINDS)))
        fails, is_killed = choice.random() < 0.2, choice.random() < 0.4
        networks = named(*asked) + [{"name": "broken", "ips": ["10.9.9.9/24"]}] * fails
        promises = {f"{GUARANTEE}.net{asked.index('ours') + 1}": "1M"} if "ours" in asked else {}
        lab.plugin = killing(lab, whole, choice.uniform(0.01, 0.3)) if is_killed else whole
        verb = "DEL" if pod in attached else "ADD"
        answer = lab.call(verb, pod, networks, others(pod), promises=promises)
        lab.plugin = whole
        happened.update({verb, *asked, *["killed"] * is_killed, *["failing"] * (fails and verb == "ADD")})
        if "interfaces" in answer:
            attached[pod] = asked
        else:
            attached.pop(pod, None)
            assert lab.call("DEL", pod, networks, others(pod)) == {}
        require_whole(lab, pods, attached, first)
    cases.about(happened, *KINDS, "ADD", "DEL", "killed", "failing")


def killing(lab: Lab, plugin: Path, after: float) -> Path:
    """What calls the plugin, and kills it, and nobody else, after so many seconds."""
    script = f"#!/bin/sh\ntimeout --foreground -s KILL {after:.3f} {plugin}\nexit 0\n"
    lab.node.run("sh", "-c", "cat >/run/killing && chmod +x /run/killing", stdin=script)
    return Path("/run/killing")


def require_whole(lab: Lab, pods: list[str], attached: dict[str, list[str]], first: Any) -> None:
    links, leases, _, records, ours = lab.left()
    kinds = [kind for asked in attached.values() for kind in asked]
    assert len(leases) == kinds.count("bridge"), (attached, leases)
    assert len(ours) == kinds.count("ours"), (attached, ours)
    assert len(records.split()) == len(attached), (attached, records)
    classes = lab.node.run("tc", "class", "show", "dev", "eth1")
    assert len(re.findall("class htb c0de:1. parent c0de:1 ", classes)) == kinds.count("ours"), classes
    ends = kinds.count("bridge") + kinds.count("ours") - kinds.count("host-device")
    assert len(links) == len(first[0]) + ends, (attached, links)
    for pod in pods:
        found = [link["ifname"] for link in lab.node.show("ip", "-j", "link", pod=pod)]
        assert len(found) == 3 + len(attached.get(pod, ())), (pod, attached, found)
