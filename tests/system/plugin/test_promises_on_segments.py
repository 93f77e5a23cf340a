"""A promise on a further interface: kept on its segment's own link, and admitted there."""

from __future__ import annotations

import json
import os
import re
import signal
from typing import Any

import pytest

from tests.system.plugin.conftest import (
    ANSWERS,
    GUARANTEE,
    REFERENCE,
    Document,
    Node,
    child_of,
    network,
)
from tests.system.plugin.runtimes import ANNOTATIONS
from tests.system.plugin.segment_lab import BRIDGE, DEVICE, MACVLAN, ON_SEGMENT, Lab, others
from tests.system.plugin.uplinks import ledger

pytestmark = pytest.mark.skipif(
    not all((REFERENCE / name).exists() for name in ("bridge", "macvlan", "host-local", "static")),
    reason="containernetworking-plugins are not installed",
)
PROMISE = f"{GUARANTEE}.net1"
PATH = f'runtimeConfig["{ANNOTATIONS}"]["{PROMISE}"]'
OURS = {
    "cniVersion": "1.1.0",
    **ON_SEGMENT,
    "name": "plant",
    "bridge": "dev-plant",
    "subnet": "100.64.0.0/24",
}
BEHIND = {"cniVersion": "1.0.0", "name": "plant", "plugins": [{**BRIDGE}, {**ON_SEGMENT, "mtu": 1500}]}
SEND = """
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    for _ in range(10):
        sender.sendto(bytes(1000), ("%s", 9))
"""


@pytest.fixture
def lab(node: Node) -> Lab:
    made = Lab(node)
    made.define("plant", OURS)
    return made


def add(lab: Lab, pod: str, promise: str = "", **keys: Any) -> Document:
    """A pod with that promise to its second interface."""
    lab.others(pod)
    promises = {PROMISE: promise} if promise else {}
    return lab.call("ADD", pod, "plant", others(pod), promises=promises, **keys)


def classes(lab: Lab, device: str = "eth1") -> dict[str, tuple[str, int]]:
    """Each class's rate, and the bytes that it has sent."""
    shown = lab.node.run("tc", "-s", "class", "show", "dev", device)
    found = re.findall(r"class htb (\S+) .*?rate (\S+) .*\n Sent (\d+) ", shown)
    return {handle: (rate, int(sent)) for handle, rate, sent in found}


def uplinks(lab: Lab) -> list[str]:
    return [tree["uplink"] for tree in ledger(lab.node)["trees"]]


def on_main_uplink(lab: Lab, pod: str) -> Document:
    """A pod of the cluster with a promise on the node's own uplink."""
    lab.node.add_pod_namespace(pod)
    annotations = {ANNOTATIONS: {GUARANTEE: "300M"}}
    document = network(enforcement="node", uplink="eth2", capacity="1G", runtimeConfig=annotations)
    result = lab.node.call("ADD", pod, document)
    assert "code" not in result, result
    return {**document, "prevResult": result}


@pytest.mark.parametrize("definition", [OURS, BEHIND], ids=["ours", "behind bridge"])
@pytest.mark.long(one_in=2)
def test_a_promise_is_a_class_on_the_link_of_its_segment(lab: Lab, definition: Document) -> None:
    lab.define("plant", definition)
    first = on_main_uplink(lab, "M-1")
    before = lab.left(), ledger(lab.node)
    result = add(lab, "A-1", "20M")
    assert "code" not in result, result
    assert uplinks(lab) == ["eth1", "eth2"]
    (own,) = [one for one in ledger(lab.node)["attachments"] if one["uplink"] == "eth1"]
    assert (own["guarantee"], own["class"] in classes(lab, "eth2")) == (20_000_000, False)
    assert classes(lab)[own["class"]][0] == "20317Kbit"  # of the wire
    lab.node.in_pod("A-1", "/usr/bin/python3", "-c", SEND % DEVICE)
    assert classes(lab)[own["class"]][1] >= 10_000

    promises = {PROMISE: "20M"}
    assert lab.call("CHECK", "A-1", "plant", result, promises=promises) == {}
    lab.node.run("tc", "class", "delete", "dev", "eth1", "classid", own["class"])
    assert "of eth1 is missing" in lab.call("CHECK", "A-1", "plant", result, promises=promises)["msg"]
    assert lab.node.call("CHECK", "M-1", first) == {}  # another link's trouble is not its own
    assert lab.node.call("STATUS", "", first) == {}
    assert "of eth1 is missing" in lab.node.run(lab.node.plugin, "reconcile")
    assert own["class"] in classes(lab)
    metrics = lab.node.run(lab.node.plugin, "metrics")
    assert 'concorde_uplink_promised_bits_per_second{device="eth1"} ' in metrics

    assert lab.call("DEL", "A-1", "plant", result, promises=promises) == {}
    assert (lab.left(), ledger(lab.node), classes(lab)) == (*before, {})
    assert lab.node.run(lab.node.plugin, "reconcile") == "nothing to repair\n"
    listed = {"plugins": [definition], **definition, "name": "plant"}  # what removes a definition's rest
    assert "/run/concorde/plant" in lab.node.run(lab.node.plugin, "dismantle", stdin=json.dumps(listed))


def test_what_does_not_fit_on_the_segment_is_refused_until_there_is_room(lab: Lab) -> None:
    """The clusters share the link, whichever of them asks."""
    lab.define("yard", {**OURS, "name": "yard", "bridge": "dev-yard", "subnet": "100.65.0.0/24"})
    on_main_uplink(lab, "M-1")
    assert "code" not in add(lab, "A-1", "60M")
    lab.others("B-1")
    asked = "yard", others("B-1")
    before = lab.left(), ledger(lab.node), classes(lab).keys()
    lab.node.run("sh", "-c", "mkdir -p /run/concorde/cluster-b && : >/run/concorde/cluster-b/refusals")
    named = "K8S_POD_NAMESPACE=default;K8S_POD_NAME=b"
    refused = lab.call("ADD", "B-1", *asked, promises={PROMISE: "60M"}, cluster="b", arguments=named)
    assert refused["code"] == 105
    noted = json.loads(lab.node.run("cat", "/run/concorde/cluster-b/refusals"))  # for an event of the pod
    assert (noted["pod"], noted["code"], noted["message"]) == ("b", 105, refused["msg"])
    for words in (
        f"{PATH}: net1 (default/yard): concorde: ADD: no room for a guarantee of 60 Mbit/s on eth1",
        "36.903 Mbit/s of 96.903 Mbit/s are free; held by plant 60 Mbit/s (1 pod); most by plant A-1",
    ):
        assert words in refused["msg"]
    assert (lab.left(), ledger(lab.node), classes(lab).keys()) == before
    assert lab.call("DEL", "A-1", "plant", others("A-1")) == {}
    assert "code" not in lab.call("ADD", "B-1", *asked, promises={PROMISE: "60M"}, cluster="b")
    other = lab.call("ADD", "A-1", "plant", others("A-1"), promises={PROMISE: "1M", f"{ANSWERS}.net1": "38M"})
    assert other["code"] == 105
    lab.define("plant", {**OURS, "capacity": "1G"})
    assert "differs from the one that the guarantees of yard" in add(lab, "A-2", "1M")["msg"]


@pytest.mark.long(one_in=0)
def test_a_promise_that_nobody_would_keep_is_refused(lab: Lab) -> None:
    macvlan = {**MACVLAN, "ipam": {"type": "static", "addresses": [{"address": "172.17.16.9/24"}]}}
    lab.define("passing", {"cniVersion": "1.0.0", "plugins": [macvlan, {**ON_SEGMENT, "mtu": 1500}]})
    lab.others("A-1")
    for networks, promises, words in (
        ("bridge-conf", {PROMISE: "1M"}, f"{PATH}: nobody would keep it: no plugin concorde of "),
        ("plant", {f"{GUARANTEE}.net2": "1M"}, "net2 is no further interface of the pod"),
        ("", {PROMISE: "1M"}, f"{PATH}: net1 is no further interface of the pod"),
        ("plant", {PROMISE: "much"}, f"{PATH}: 'much' is not a quantity"),
        ("passing", {PROMISE: "1M"}, "a guarantee needs an IPv4 address and the node's end of the interface"),
        ("plant", {PROMISE: "200M"}, f"{PATH}: net1 (default/plant): concorde: ADD: no room"),
    ):
        before = lab.left()
        refused = lab.call("ADD", "A-1", networks, others("A-1"), promises=promises)
        assert words in refused.get("msg", ""), refused
        assert (lab.left(), uplinks(lab)) == (before, [])


def test_enforcement_pod_limits_the_interface_itself(lab: Lab) -> None:
    lab.define("plant", {**OURS, "enforcement": "pod"})
    assert "code" not in add(lab, "A-1", "20M")
    shaped = lab.node.in_pod("A-1", "tc", "class", "show", "dev", "net1")
    assert shaped.startswith("class htb 1:1 root prio 0 rate 20Mbit ceil 20Mbit ")
    assert uplinks(lab) == []


@pytest.mark.long(one_in=0)
def test_a_link_that_is_gone_holds_up_no_other(lab: Lab) -> None:
    first = on_main_uplink(lab, "M-1")
    assert "code" not in add(lab, "A-1", "20M")
    lab.node.run("ip", "link", "delete", "eth1")
    assert lab.node.call("CHECK", "M-1", first) == {}
    lab.node.run("tc", "qdisc", "delete", "dev", "eth2", "root")
    on_main_uplink(lab, "M-2")  # repairs it
    assert lab.node.call("CHECK", "M-1", first) == {}
    assert "this node has no interface eth1" in add(lab, "A-2", "1M")["msg"]
    assert lab.call("DEL", "A-1", "plant", others("A-1")) == {}
    assert uplinks(lab) == ["eth2"]
    assert lab.node.run(lab.node.plugin, "reconcile") == "nothing to repair\n"


def test_rebuild_learns_it_from_the_record(lab: Lab) -> None:
    on_main_uplink(lab, "M-1")
    assert "code" not in add(lab, "A-1", "20M")
    before = ledger(lab.node)
    lab.node.run("sh", "-c", "echo damaged >/run/concorde/node/ledger.sqlite")
    said = lab.node.run(lab.node.plugin, "rebuild")
    after = ledger(lab.node)
    assert [one for one in after["attachments"] if one["network"] == "plant"] == [
        one for one in before["attachments"] if one["network"] == "plant"
    ], said
    assert [tree for tree in after["trees"] if tree["uplink"] == "eth1"] == before["trees"][:1]


@pytest.mark.parametrize("verb", ["DEL", "GC"])
@pytest.mark.long(one_in=0)
def test_what_a_killed_call_left_of_a_segment_s_tree_goes(lab: Lab, verb: str) -> None:
    on_main_uplink(lab, "M-1")
    before = lab.left(), ledger(lab.node)
    lab.others("A-1")
    document = {**OURS, "runtimeConfig": {ANNOTATIONS: {GUARANTEE: "20M"}}}
    add = lab.node.start("ADD", "A-1", document, interface="net1", path=lab.node.slow_nft())
    lab.node.run("cat", "/run/reached")
    os.kill(child_of(add.pid), signal.SIGKILL)
    add.communicate()
    lab.node.run("sh", "-c", "echo > /run/go")
    assert uplinks(lab) == ["eth1", "eth2"]
    for _ in range(2):
        if verb == "DEL":
            assert lab.node.call("DEL", "A-1", OURS, interface="net1") == {}
        else:
            assert lab.node.call("GC", "", {**OURS, "cni.dev/valid-attachments": []}) == {}
    lab.node.run(lab.node.plugin, "reconcile")  # the tables were taken away
    assert (lab.left(), ledger(lab.node), classes(lab)) == (*before, {})
