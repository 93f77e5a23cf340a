"""What pods receive is promised on their node's link, as what they send is, and refused where that is full.

Here nobody sends anything: that takes several nodes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.system.plugin.conftest import GUARANTEE, INGRESS, Document, Node
from tests.system.plugin.runtimes import ANNOTATIONS, CACHE, attach
from tests.system.plugin.test_agent import agent
from tests.system.plugin.test_rebuild import LEDGER, program, rebuilt, told
from tests.system.plugin.uplinks import on_uplink

PODS = ("A-1", "A-2", "A-3", "B-1")
KEY = "0123456789abcdef"


@pytest.fixture
def node(node: Node) -> Node:
    node.run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0-peer")
    node.run("ip", "link", "set", "eth0", "up")
    node.add_pod_namespace(*PODS)
    return node


@pytest.fixture
def member(node: Node, tmp_path: Path) -> Iterator[Node]:
    """A node of two clusters that have keys, with an agent of one of them."""
    for cluster in ("b", "a"):
        key = tmp_path / cluster
        key.write_text(KEY + cluster)
        options = "--every", "3600", "--key", str(key)
        with agent(node, tmp_path / f"log-{cluster}", receiving("1M", cluster=cluster), *options) as its:
            its.says("takes part in the fabric")
            if cluster == "a":
                yield node


def test_the_agent_of_a_cluster_keeps_no_promise_of_another_that_has_no_key(
    node: Node, tmp_path: Path
) -> None:
    key = tmp_path / "key"
    key.write_text(KEY)
    with agent(node, tmp_path / "log", receiving("1M"), "--every", "3600", "--key", str(key)) as its:
        its.says("takes part in the fabric")
        attach(node, "A-1", receiving("300M"))
        error = node.call("ADD", "B-1", receiving("300M", cluster="b"))
    assert error["code"] == 11
    assert "with the cluster's --key" in error["msg"]
    status, words = change(node, "A-1", "ingress-guarantee=400M")  # by now there is no agent at all
    assert (status, "no agent divides this node's link yet" in words) == (4, True)
    assert promised(node) == {"A-1": (300_000_000, 15_000_000)}


def test_where_no_agent_divides_the_link_only_what_receives_waits_for_one(node: Node) -> None:
    error = node.call("ADD", "A-1", receiving("500M"))
    assert error["code"] == 11
    assert "start concorde agent" in error["msg"]
    assert promised(node) == {}
    plain = receiving("500M")
    del plain["runtimeConfig"][ANNOTATIONS][INGRESS]
    attach(node, "A-1", plain)
    stdout, stderr = node.start("STATUS", "", plain).communicate()
    assert (stdout, b"no agent divides this node's link" in stderr) == (b"", True)


def receiving(ingress: str, cluster: str = "a", **keys: Any) -> Document:
    """A cluster's network in a fabric, as passed for a pod that is to receive so much."""
    fabric = {"enforcement": "fabric", "fabric": {"nodes": ["192.168.9.0/24"]}}
    found = on_uplink(cluster=cluster, **{**fabric, **keys})
    found["runtimeConfig"][ANNOTATIONS][INGRESS] = ingress
    return found


def promised(node: Node) -> dict[str, tuple[int, int]]:
    """What each pod is promised of what it receives, and for its answers."""
    return {one["container"]: (one["ingress"], one["answers"]) for one in told(node)["attachments"]}


def test_three_pods_ask_for_a_full_link_of_two_clusters_and_the_last_waits_for_another_to_end(
    member: Node,
) -> None:
    result = attach(member, "A-1", receiving("500M"))
    attach(member, "B-1", receiving("300M", cluster="b"))
    error = member.call("ADD", "A-2", receiving("200M"))
    assert error["code"] == 105
    assert error["msg"].startswith(
        "no room for a guarantee of 200 Mbit/s for what is received on eth0: it takes "
    )
    assert "held by cluster-a 517" in error["msg"]
    assert "cluster-b 310" in error["msg"]
    assert promised(member) == {"A-1": (500_000_000, 25_000_000), "B-1": (300_000_000, 15_000_000)}
    (tree,) = told(member)["trees"]
    assert tree["ingressPromised"] > 800_000_000 > 200_000_000 > tree["ingressFree"] > 100_000_000
    assert (
        tree["promised"] < 50_000_000 < 900_000_000 < tree["free"]
    )  # answers are all that is promised there
    assert "INGRESS" in program(member, "ledger")[1]
    attach(member, "A-2", receiving("100M"))
    assert member.call("CHECK", "A-1", receiving("500M", prevResult=result)) == {}
    assert member.call("DEL", "A-1", receiving("500M")) == {}
    attach(member, "A-3", receiving("500M"))
    assert program(member, "reconcile") == (0, "nothing to repair\n")
    assert member.call("GC", "", {**receiving("1M"), "cni.dev/valid-attachments": []}) == {}
    assert promised(member) == {"B-1": (300_000_000, 15_000_000)}
    assert member.call("DEL", "B-1", receiving("1M", cluster="b")) == {}
    assert told(member)["trees"][0]["ingressPromised"] == 0


def test_check_says_what_the_ledger_has_and_the_pod_was_not_promised(member: Node) -> None:
    result = attach(member, "A-1", receiving("500M"))
    other = member.call("CHECK", "A-1", receiving("400M", prevResult=result))
    assert other["code"] == 104
    assert "ingress 500000000; expected" in other["msg"]
    words = "UPDATE promise SET rate = 7 WHERE direction = 'ingress'"
    change = "import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); d.execute(sys.argv[2]); d.commit()"
    member.run("python3", "-c", change, LEDGER, words)
    error = member.call("CHECK", "A-1", receiving("500M", prevResult=result))
    assert error["code"] == 104
    assert "'inward': 7" in error["msg"]


def change(node: Node, pod: str, *promises: str) -> tuple[int, str]:
    return program(node, "change", pod, *promises, "--cache", CACHE)


def made(node: Node) -> str:
    """The tree, with its queues, whose packets have which class, and the ledger; but for A-1's address."""
    shown = [node.run("tc", "-d", what, "show", "dev", "eth0") for what in ("class", "qdisc")]
    # The kernel numbers queues within queues, each time anew.
    tree = [sorted(re.sub(r"\b8[0-9a-f]{3}:", "8:", text).splitlines()) for text in shown]
    maps = [node.run("nft", "list", "map", "ip", "concorde", name) for name in ("promises", "answers")]
    book = told(node)
    return json.dumps([tree, maps, book]).replace(book["attachments"][0]["address"], "its own")


def test_a_change_leaves_what_add_would_have_made(member: Node) -> None:
    configuration = receiving("300M")
    for promises in ({"ingress": "600M"}, {"ingress": "50M"}, {"egress": "200M", "ingress": "400M"}):
        wanted = receiving(promises["ingress"])
        wanted["runtimeConfig"][ANNOTATIONS].update({GUARANTEE: "200M"} if len(promises) > 1 else {})
        attach(member, "A-1", wanted)
        by_add = made(member)
        assert member.call("DEL", "A-1", wanted) == {}
        result = attach(member, "A-1", configuration)
        asked = [f"{direction}-guarantee={rate}" for direction, rate in promises.items()]
        status, words = change(member, "A-1", *asked)
        assert (status, made(member)) == (0, by_add), words
        assert member.call("CHECK", "A-1", {**configuration, "prevResult": result}) == {}
        assert member.call("DEL", "A-1", configuration) == {}
    assert words == (
        "cluster-a A-1: egress-guarantee 200 Mbit/s, before nothing\n"
        "cluster-a A-1: ingress-guarantee 400 Mbit/s, before 300 Mbit/s\n"
    )


@pytest.mark.long(one_in=0)
def test_everybody_knows_what_was_changed_and_the_next_pod_does_not(member: Node) -> None:
    configuration = receiving("300M")
    result = attach(member, "A-1", configuration)
    for asked in ("ingress-guarantee=500M", "egress-guarantee=100M", "ingress-guarantee=400M"):
        assert change(member, "A-1", asked)[0] == 0
    before = made(member)
    (tree,) = told(member)["trees"]
    assert (
        f'concorde_downlink_promised_bits_per_second{{device="eth0"}} {tree["ingressPromised"]}\n'
        in program(member, "metrics")[1]
    )
    assert promised(member) == {"A-1": (400_000_000, 20_000_000)}
    assert program(member, "reconcile") == (0, "nothing to repair\n")
    assert "made: " in rebuilt(member)
    assert made(member) == before
    assert member.call("CHECK", "A-1", {**configuration, "prevResult": result}) == {}
    assert member.call("CHECK", "A-1", receiving("299M", prevResult=result))["code"] == 104
    assert member.call("DEL", "A-1", configuration) == {}
    attach(member, "A-1", configuration)
    assert promised(member) == {"A-1": (300_000_000, 15_000_000)}


def test_what_has_no_room_at_either_end_is_not_changed_at_all(member: Node) -> None:
    attach(member, "A-1", receiving("300M"))
    attach(member, "B-1", receiving("500M", cluster="b"))
    before = made(member)
    for asked, words in (
        (("egress-guarantee=100M", "ingress-guarantee=500M"), "500 Mbit/s for what is received on eth0: "),
        (
            ("ingress-guarantee=310M", "egress-guarantee=950M"),
            "950 Mbit/s and 15.5 Mbit/s for answers on eth0: ",
        ),
    ):
        status, said = change(member, "A-1", *asked)
        assert status == 1
        assert said.startswith(f"concorde: no room for a guarantee of {words}")
        assert "held by cluster-b " in said
        assert made(member) == before


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "gone"])
@pytest.mark.long(one_in=2)
def test_rebuild_knows_what_was_promised(member: Node, whole: bool) -> None:
    configuration = receiving("500M")
    result = attach(member, "A-1", configuration)
    attach(member, "B-1", receiving("300M", cluster="b"))
    before = told(member)
    if not whole:
        member.run("rm", LEDGER)
    else:
        member.run("sh", "-c", f"rm -f {CACHE}/cluster-b-*")
    assert "made: " in rebuilt(member)
    assert told(member) == before
    assert member.call("CHECK", "A-1", {**configuration, "prevResult": result}) == {}
    assert program(member, "reconcile") == (0, "nothing to repair\n")


def test_rebuild_says_what_is_too_much(member: Node) -> None:
    attach(member, "A-1", receiving("500M"))
    listed = member.run("sh", "-c", f"ls {CACHE}").split()
    kept = json.loads(member.run("cat", f"{CACHE}/{listed[0]}"))
    kept["capabilityArgs"][ANNOTATIONS][INGRESS] = "1G"
    member.run("sh", "-c", f"cat >{CACHE}/{listed[0]}", stdin=json.dumps(kept))
    assert "more is promised on eth0 of what is received than it has, by " in rebuilt(member)


@pytest.mark.parametrize(
    ("enforcement", "ingress", "words"),
    [
        ("node", "500M", "enforcement node promises nothing of what a pod receives"),
        ("pod", "500M", "enforcement pod promises nothing of what a pod receives"),
        ("none", "500M", "enforcement none promises nothing of what a pod receives"),
        ("fabric", "much", "'much' is not a quantity such as 1G, 500M or 1e9"),
        ("fabric", "10", "'10' is outside 1k to 1T (bits per second)"),
    ],
)
@pytest.mark.long(one_in=3)
def test_who_cannot_be_promised_it_is_told_by_which_annotation(
    member: Node, enforcement: str, ingress: str, words: str
) -> None:
    error = member.call("ADD", "A-1", receiving(ingress, enforcement=enforcement))
    assert (error["code"], error["msg"]) == (7, f'runtimeConfig["{ANNOTATIONS}"]["{INGRESS}"]: {words}')
    assert program(member, "ledger") == (0, "the ledger is empty: no pod is attached\n")
