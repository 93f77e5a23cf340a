"""A pod that runs is promised something else: its class is changed where it is, or nothing is."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.system.plugin.conftest import Node, network
from tests.system.plugin.runtimes import CACHE, attach
from tests.system.plugin.test_rebuild import LEDGER, program, rebuilt, told
from tests.system.plugin.test_uplink_traffic import send
from tests.system.plugin.uplinks import Pair, on_uplink

PODS = ("A-1", "A-2", "B-1")
CLASS = "c0de:10"
COUNT = 120  # of datagrams of 1,000 bytes


@pytest.fixture
def pair(node: Node) -> Pair:
    node.add_pod_namespace(*PODS)
    return Pair(node)


def change(pair: Pair, *arguments: str) -> tuple[int, str]:
    return program(pair.node, "change", *arguments, "--cache", CACHE)


def promised(pair: Pair) -> dict[str, Any]:
    return {one["container"]: one["guarantee"] for one in told(pair.node)["attachments"]}


def shown(pair: Pair) -> str:
    """The class of the first promise, as tc shows it."""
    lines = pair.node.run("tc", "class", "show", "dev", "eth0").splitlines()
    (own,) = [line for line in lines if f"htb {CLASS} " in line]
    return own


def test_a_class_is_changed_where_it_is_and_everybody_knows_it(pair: Pair) -> None:
    node = pair.node
    configuration = on_uplink("100M", "900M")
    result = attach(node, "A-1", configuration)
    attach(node, "B-1", on_uplink("300M", cluster="b"))
    pair.plug_in()
    send(node, "A-1")
    sent = pair.settled()[CLASS]
    queue = node.run("tc", "-s", "qdisc", "show", "dev", "eth0", "parent", CLASS)
    for rate, kernels in (("500M", "525273Kbit"), ("50M", "52527Kbit"), ("200M", "210109Kbit")):
        status, words = change(pair, "A-1", f"egress-guarantee={rate}")
        assert (status, words.partition(": ")[0]) == (0, "cluster-a A-1"), words
        assert f"rate {kernels} " in shown(pair)
        assert program(node, "reconcile") == (0, "nothing to repair\n")
        assert node.call("CHECK", "A-1", {**configuration, "prevResult": result}) == {}
    assert sent > 0
    assert pair.settled()[CLASS] >= sent  # it is the same class still
    assert "Sent 0 bytes" not in queue
    assert "Sent 0 bytes" not in node.run("tc", "-s", "qdisc", "show", "dev", "eth0", "parent", CLASS)
    assert promised(pair) == {"A-1": 200_000_000, "B-1": 300_000_000}
    other = node.call("CHECK", "A-1", {**on_uplink("300M", "900M"), "prevResult": result})
    assert other["code"] == 104  # neither what there is nor what the configuration said
    before = told(node)
    assert "made: " in rebuilt(node)
    assert told(node) == before
    assert node.call("CHECK", "A-1", {**configuration, "prevResult": result}) == {}
    assert node.call("DEL", "A-1", configuration) == {}
    attach(node, "A-1", configuration)
    assert promised(pair)["A-1"] == 100_000_000


@pytest.mark.long(one_in=0)
def test_what_waits_in_the_class_meanwhile_is_not_lost(pair: Pair) -> None:
    """Half of it passes at once, as the class's burst; the rest takes a second."""
    attach(pair.node, "A-1", on_uplink("100k", capacity="400k"))
    pair.plug_in()

    def change_twice() -> None:
        send(pair.node, "A-1", count=COUNT)
        (waiting,) = re.findall(
            r" backlog (\d+)", pair.node.run("tc", "-s", "qdisc", "show", "dev", "eth0", "root")
        )
        assert int(waiting) > 0
        for rate in ("200k", "50k"):
            assert change(pair, "A-1", f"egress-guarantee={rate}")[0] == 0

    assert pair.sent(change_twice)[CLASS] >= COUNT * (1000 + 28 + 64)  # UDP, VXLAN


def test_answers_become_a_guarantee_and_keep_their_limits(pair: Pair) -> None:
    attach(pair.node, "A-1", on_uplink(answers="5M"))
    assert change(pair, "A-1", "egress-guarantee=95M")[0] == 0
    assert program(pair.node, "reconcile") == (0, "nothing to repair\n")
    assert CLASS in pair.node.run("nft", "list", "map", "ip", "concorde", "promises")
    assert CLASS not in pair.node.run("nft", "list", "map", "ip", "concorde", "answers")


def test_who_was_promised_nothing_gets_a_class(pair: Pair) -> None:
    attach(pair.node, "A-1", on_uplink())
    assert change(pair, "A-1", "egress-guarantee.eth0=95M") == (
        0,
        "cluster-a A-1: egress-guarantee 95 Mbit/s, before nothing\n",
    )
    assert "rate 99801Kbit " in shown(pair)
    assert program(pair.node, "reconcile") == (0, "nothing to repair\n")


def test_what_does_not_fit_is_refused_with_the_holders_and_changes_nothing(pair: Pair) -> None:
    node = pair.node
    attach(node, "A-1", on_uplink("400M"))
    attach(node, "B-1", on_uplink("300M", cluster="b"))
    before = told(node), shown(pair)
    status, words = change(pair, "A-1", "egress-guarantee=700M")
    assert status == 1
    assert words.startswith("concorde: no room for a guarantee of 700 Mbit/s on eth0: it takes ")
    assert "held by cluster-b 310" in words
    assert "cluster-a" not in words.partition("held by")[2]  # its own is not in its way
    assert (told(node), shown(pair)) == before
    assert change(pair, "A-1", "egress-guarantee=600M")[0] == 0


def test_what_the_kernel_refuses_is_not_promised(pair: Pair) -> None:
    node = pair.node
    attach(node, "A-1", on_uplink("400M"))
    before = told(node)
    node.run("tc", "qdisc", "replace", "dev", "eth0", "root", "handle", "7:", "pfifo")
    status, words = change(pair, "A-1", "egress-guarantee=300M")
    assert (status, "somebody else configured eth0: its root qdisc is pfifo 7:" in words) == (4, True), words
    assert told(node) == before
    node.run("tc", "qdisc", "delete", "dev", "eth0", "root")
    assert program(node, "reconcile")[0] == 0
    assert change(pair, "A-1", "egress-guarantee=300M")[0] == 0


def test_bad_input_is_named_and_ends_with_2(pair: Pair) -> None:
    node = pair.node
    attach(node, "A-1", on_uplink("100M", "200M", answers="10M"))
    attach(node, "A-2", network("cluster-c", 18))
    asked = "egress-guarantee=150M"
    for arguments, words in (
        (("A-9", asked), "no pod 'A-9' is attached to this node"),
        (("A-1", "egress-guarantee.net1=150M"), "A-1: say of which interface: egress-guarantee.eth0"),
        (
            ("A-1", "egress-guarantee=300M"),
            'egress-guarantee"]: guarantee of 300000000 bit/s is above the 2000',
        ),
        (
            ("A-1", "egress-guarantee=195M"),
            "10000000 bit/s, with the guarantee of 195000000, is above the 200",
        ),
        (("A-1", "egress-guarantee=much"), "egress-guarantee: 'much' is not a quantity such as 1G"),
        (("A-1", "egress-guarantee=1"), "egress-guarantee: '1' is outside 1k to 1T"),
        (("A-1", "speed=1G"), "'speed=1G' is not egress-guarantee=RATE or ingress-guarantee=RATE, such as "),
        (("A-1",), "change requires a pod and egress-guarantee=RATE or ingress-guarantee=RATE"),
        (("A-1", asked, "ingress-guarantee=1M"), "enforcement node promises nothing of what a pod receives"),
        (("A-2", asked), "cluster-c A-2: enforcement pod keeps no promise on the node's link"),
    ):
        status, said = change(pair, *arguments)
        assert status == 2, said
        assert words in said
    node.run("rm", "-r", CACHE)
    status, said = program(node, "change", "A-1", asked)
    assert (status, "no runtime's cache tells its network's configuration" in said) == (2, True)
    node.run("rm", LEDGER)
    assert change(pair, "A-1", asked)[0] == 2
