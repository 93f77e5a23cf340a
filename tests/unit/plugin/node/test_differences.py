from __future__ import annotations

from collections.abc import Callable

import pytest
from concorde import names
from concorde.node import htb, observe, uplinks
from concorde.node.differences import differences
from concorde.node.observe import State
from concorde.node.records import Tree

from tests.unit.plugin.node.examples import GIGA, MAC, TC_FAIR, TREE, entry, whole


def test_what_was_made_is_read_back_without_a_difference() -> None:
    assert [d.text for d in differences([TREE], [entry(minor=0x10)], whole())] == []


def test_a_repair_lowers_the_default_class_first_and_raises_it_last() -> None:
    found = differences([TREE], [entry(minor=0x11)], whole())
    assert [d.text.partition(" of eth0")[0] for d in found[:4]] == [
        "class c0de:10",
        "class c0de:4010",
        "class c0de:11 of cluster-a A-1",
        "class c0de:4011 of cluster-a A-1",
    ]
    lines = "".join(d.tc for d in found).splitlines()
    assert all("rate 8000bit" in line for line in lines[:2])
    assert lines[2] == "class delete dev eth0 classid c0de:10"
    assert "class change dev eth0 parent c0de:1 classid c0de:fffc htb prio 0 rate 7820000000bit" in lines[-2]
    assert "change dev eth0 parent c0de:fffc classid c0de:fffe htb prio 0 rate 3910000000bit" in lines[-1]
    assert sorted("".join(d.nft for d in found).splitlines()) == [
        'add element ip concorde efforts { "cni-a" . 172.16.1.2 : c0de:4011 }',
        'add element ip concorde promises { "cni-a" . 172.16.1.2 : c0de:11 }',
        'delete element ip concorde efforts { "cni-a" . 172.16.1.2 : c0de:4010 }',
        'delete element ip concorde promises { "cni-a" . 172.16.1.2 : c0de:10 }',
    ]


def test_a_tree_without_best_effort_of_pods_gets_it_before_its_default_class_moves_below() -> None:
    """As the version before made it: HTB cannot move a class, so what waits there is lost."""
    state = whole()
    del state.uplinks["eth0"].classes[0x4010], state.uplinks["eth0"].classes[htb.BEST_EFFORT]
    state.uplinks["eth0"].classes[htb.DEFAULT] = (*state.uplinks["eth0"].classes[htb.DEFAULT][:-1], "c0de:1")
    found = differences([TREE], [entry(minor=0x10)], state)
    lines = [line.split() for line in "".join(one.tc for one in found).splitlines()]
    said = [(words[1], words[words.index("classid") + 1]) for words in lines if words[0] == "class"]
    assert said == [
        ("change", "c0de:fffe"),
        ("add", "c0de:fffc"),
        ("add", "c0de:4010"),
        ("delete", "c0de:fffe"),
        ("add", "c0de:fffe"),
        ("change", "c0de:fffc"),
        ("change", "c0de:fffe"),
    ]


def test_classes_that_count_no_wire_are_changed_one_by_one_within_the_capacity() -> None:
    """As those that the version before made: no step promises more than the wire carries."""
    ethernet = Tree(TREE.uplink, TREE.capacity, TREE.reserve, TREE.ports)
    found = differences([ethernet], [entry(minor=0x10)], whole())
    lines = [line.split() for line in "".join(one.tc for one in found).splitlines()]
    assert [words[words.index("classid") + 1] for words in lines] == [
        *("c0de:fffc", "c0de:fffe", "c0de:1", "c0de:fffd", "c0de:fffc", "c0de:10", "c0de:4010", "c0de:fffe"),
        *("c0de:fffc", "c0de:fffe"),
    ]
    rates = {"c0de:1": 9 * GIGA, "c0de:10": GIGA, "c0de:fffd": 180_000_000, "c0de:fffc": 7_820_000_000}
    for words in lines:
        assert words[1] == "change"
        assert words[-4:] == ["overhead", "24", "mpu", "84"]
        name = words[words.index("classid") + 1]
        if name in rates:
            rates[name] = int(words[words.index("rate") + 1].removesuffix("bit"))
        assert sum(rates.values()) - rates["c0de:1"] <= rates["c0de:1"]
    assert rates["c0de:1"] == ethernet.usable


def test_each_uplink_has_a_tree_of_its_own() -> None:
    """What is there of one is neither missed at the other nor too much."""
    other = Tree("eth1", GIGA, 0, (443,), overhead=0)
    elsewhere = entry("A-2", 1000, 0xAC100103, port="veth2", uplink="eth1", minor=0x11)
    state = whole()
    state.uplinks["eth1"] = observe.UplinkState()
    found = differences([TREE, other], [entry(minor=0x10), elsewhere], state)
    (planted,) = [one for one in found if one.tc]
    assert planted.text == "eth1 has no root qdisc htb c0de: with default class fffe"
    assert all(" dev eth1 " in line for line in planted.tc.splitlines())
    classes = {word for word in planted.tc.split() if word.startswith("c0de:")}
    assert classes >= {"c0de:11", "c0de:4011"}
    assert not classes & {"c0de:10", "c0de:4010"}
    (marking,) = [one.nft for one in found if one.text.startswith("nftables: ip6 concorde postrouting")]
    for rule in ('iifname "eth0" meta priority', 'iifname "eth1" meta priority', "tcp dport { 22, 443 }"):
        assert rule in marking
    rate = htb.default_rate(other, 1000)
    assert f"classid c0de:fffc htb prio 0 rate {rate}bit" in planted.tc


CLASS = "c0de:10 of cluster-a A-1 of eth0"
KEY = ("cluster-a", "A-1", "eth0")


@pytest.mark.parametrize(
    ("change", "text", "repair", "key"),
    [
        (
            lambda s: s.uplinks["eth0"].classes.pop(0x10),
            f"class {CLASS} is missing",
            "class add dev eth0 parent c0de:1 classid c0de:10",
            KEY,
        ),
        (
            lambda s: s.uplinks["eth0"].classes.pop(1),
            "class c0de:1 (all) of eth0 is missing",
            "class add dev eth0 parent c0de: classid c0de:1 ",
            None,
        ),
        (
            lambda s: s.uplinks["eth0"].classes.update({0x10: ("2Gbit", "9Gbit", "0", "0b", "c0de:1")}),
            f"class {CLASS} has rate 2Gbit, ceil 9Gbit, overhead 0, mpu 0b, below c0de:1; expected",
            "class change dev eth0 parent c0de:1 classid c0de:10",
            KEY,
        ),
        (
            lambda s: s.uplinks["eth0"].classes.update({0x10: ("1Gbit", "9Gbit", "0", "84b", "c0de:1")}),
            f"class {CLASS} has rate 1Gbit, ceil 9Gbit, overhead 0, mpu 84b, below c0de:1; expected",
            "class change dev eth0 parent c0de:1 classid c0de:10",
            KEY,
        ),
        (
            lambda s: s.uplinks["eth0"].classes.update({0x20: ("1Gbit", "9Gbit", "0", "0b", "c0de:1")}),
            "class c0de:20 of eth0 belongs to nobody",
            "class delete dev eth0 classid c0de:20",
            None,
        ),
        (
            lambda s: s.uplinks["eth0"].queues.pop("c0de:fffd"),
            "class c0de:fffd (control) of eth0 lacks its queue, bfifo of 2250000 bytes",
            "qdisc replace dev eth0 parent c0de:fffd handle fffd: bfifo limit 2250000",
            None,
        ),
        (
            lambda s: s.uplinks["eth0"].queues.update({"c0de:10": ("bfifo", 0, 1)}),
            f"class {CLASS} lacks its queue, bfifo of 1250000 bytes",
            "qdisc replace dev eth0 parent c0de:10",
            KEY,
        ),
        (
            lambda s: s.uplinks["eth0"].queues.update({"c0de:10": ("tbf", 125_000_001_518, 1_250_000)}),
            f"class {CLASS} lacks its queue, bfifo of 1250000 bytes",
            "qdisc delete dev eth0 parent c0de:10\nqdisc replace dev eth0 parent c0de:10",
            KEY,
        ),
        (
            lambda s: s.uplinks["eth0"].filters.clear(),
            "eth0 has no filter for ARP",
            "filter add dev eth0",
            None,
        ),
        (lambda s: s.segments.update(vx=2), "vx sends packets of 2 segments", "vx gso_max_segs 1\n", None),
        (
            lambda s: s.uplinks["eth0"].waiting.update(arp_cache=uplinks.MOST_WAITING + 1),
            "eth0 keeps",
            "ntable change",
            None,
        ),
        (
            lambda s: s.families.discard("ip6"),
            "nftables: table ip6 concorde is missing",
            "add table ip6 concorde",
            None,
        ),
        (
            lambda s: s.sets.discard(("ip", "ways")),
            "nftables: table ip concorde is not as made",
            "add set ip concorde ways",
            None,
        ),
        (
            lambda s: s.comments.pop(("ip", "refusing")),
            "nftables: table ip concorde is not as made",
            "add chain ip concorde refusing",
            None,
        ),
        (
            lambda s: s.sets.add(("ip", "odd")),
            "nftables: ip concorde odd belongs to nobody",
            "delete set ip concorde odd",
            None,
        ),
        (
            lambda s: s.comments.pop(("ip", "forward")),
            "nftables: ip concorde forward is missing",
            "flush chain ip concorde forward",
            None,
        ),
        (
            lambda s: s.comments.update({("ip", "forward"): []}),
            "nftables: ip concorde forward is not as made",
            "flush chain ip concorde forward",
            None,
        ),
        (
            lambda s: s.elements.discard(("ip", "ways", '"cni-a" . 172.16.1.2')),
            'nftables: ip concorde ways { "cni-a" . 172.16.1.2 } of cluster-a A-1 is missing',
            "add element ip concorde ways",
            KEY,
        ),
        (
            lambda s: s.elements.add(("ip", "ways", '"cni-a" . 172.16.1.9')),
            'nftables: ip concorde ways { "cni-a" . 172.16.1.9 } belongs to nobody',
            "delete element ip concorde ways",
            None,
        ),
        (lambda s: s.closed.discard("veth1"), "port veth1 of cluster-a A-1 is open", "", KEY),
        (
            lambda s: s.fixed.clear(),
            f"port veth1 of cluster-a A-1 has lost its hardware address {MAC}",
            "",
            KEY,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_difference_is_named_and_repaired(
    change: Callable[[State], object], text: str, repair: str, key: tuple[str, str, str] | None
) -> None:
    state = whole()
    change(state)
    found = differences([TREE], [entry(minor=0x10)], state)
    assert any(one.text.startswith(text) and one.key == key and not one.waits for one in found)
    assert repair in "".join(one.tc + one.nft + one.ip for one in found)
    ports = [("veth1", MAC, False)] if text.startswith("port") else []
    assert [one.port for one in found if one.port] == ports


def test_where_the_kernel_can_each_queue_is_replaced_by_one_whose_flows_take_turns() -> None:
    """As an upgrade finds those that the version before made, or another kernel."""
    state = whole()
    state.uplinks["eth0"].fair = True
    found = [one.text for one in differences([TREE], [entry(minor=0x10)], state)]
    assert found == [
        "class c0de:fffd (control) of eth0 lacks its queue, fq_codel of 4500000 bytes",
        f"class {CLASS} lacks its queue, fq_codel of 2500000 bytes",
        f"class {CLASS.replace('10', '4010', 1)} lacks its queue,"
        " tbf of 2250000 bytes, in it fq_codel of 4500000 bytes",
        "class c0de:fffe (default) of eth0 lacks its queue,"
        " tbf of 2250000 bytes, in it fq_codel of 4500000 bytes",
    ]
    lines = "".join(one.tc for one in differences([TREE], [entry(minor=0x10)], state)).splitlines()
    assert not any(line.startswith("class delete") for line in lines)  # whoever runs keeps its rate
    # None can take another's place, and its number of flows stays.
    assert [line for line in lines if "4010" in line] == [
        "qdisc delete dev eth0 parent c0de:4010",
        *htb.queue_lines(TREE, 0x4010, entry(minor=0x10), fair=True).splitlines(),
    ]


def test_queues_whose_flows_take_turns_are_read_back_without_a_difference() -> None:
    state = whole()
    state.uplinks["eth0"].queues.update(observe.read_qdiscs(TC_FAIR).queues)
    state.uplinks["eth0"].fair = True
    assert differences([TREE], [entry(minor=0x10)], state) == []
    state.uplinks["eth0"].queues["4010:1"] = ("fq_codel", 0, 1)
    (found,) = differences([TREE], [entry(minor=0x10)], state)
    assert found.key == KEY
    assert "qdisc delete dev eth0 parent c0de:4010\nqdisc replace dev eth0 parent c0de:4010 " in found.tc


@pytest.mark.parametrize("fair", [False, True])
def test_a_class_that_is_made_again_has_the_queue_that_the_kernel_can_make(fair: bool) -> None:
    for change in (
        lambda state: state.uplinks["eth0"].classes.pop(0x10),
        lambda state: state.uplinks["eth0"].classes.update(
            {0x10: ("1Gbit", "9Gbit", "0", "0b", "c0de:fffc")}
        ),
        lambda state: setattr(state.uplinks["eth0"], "root", "default"),
    ):
        state = whole()
        if fair:
            state.uplinks["eth0"].queues.update(observe.read_qdiscs(TC_FAIR).queues)
        state.uplinks["eth0"].fair = fair
        change(state)
        (found,) = differences([TREE], [entry(minor=0x10)], state)
        assert htb.queue_lines(TREE, 0x10, entry(minor=0x10), fair) in found.tc
        assert ("fq_codel" in found.tc) == fair


@pytest.mark.parametrize(
    ("root", "text", "begins"),
    [
        (None, "the uplink eth0 is missing", ""),
        ("default", "eth0 has no root qdisc htb c0de: with default class fffe", "qdisc add dev eth0 root"),
        (
            "tbf",
            "eth0 has no root qdisc htb c0de: with default class fffe but tbf",
            "qdisc delete dev eth0 root\n",
        ),
    ],
)
def test_a_tree_that_is_not_there_is_planted_with_its_pods(root: str | None, text: str, begins: str) -> None:
    state = whole()
    state.uplinks = {"eth0": observe.UplinkState(root)} if root else {}
    (found,) = differences([TREE], [entry(minor=0x10)], state)
    assert (found.text, found.tc[: len(begins)]) == (text, begins)
    assert ("classid c0de:10 htb" in found.tc) is bool(begins)


def test_what_was_a_vtep_or_a_bridge_may_wait_and_what_is_one_is_entered() -> None:
    state = whole()
    state.elements |= {("ip", "vteps", '"vx"'), ("ip", "bridges", '"cni-a"')}
    found = differences([TREE], [entry(minor=0x10)], state, [("ip6", "vteps", '"new"')])
    assert [(one.text, one.waits) for one in found] == [
        ('nftables: ip concorde bridges { "cni-a" } belongs to nobody', True),
        ('nftables: ip concorde vteps { "vx" } belongs to nobody', True),
        ('nftables: ip6 concorde vteps { "new" } is missing', False),
    ]


def test_ports_that_are_gone_or_unknown_are_not_this_ones_to_say() -> None:
    state = whole()
    state.closed.clear()
    for one in (entry(minor=0x10, port="veth9"), entry(minor=0x10, mac="")):
        assert not [each for each in differences([TREE], [one], state) if each.port]


def test_a_port_without_hairpin_mode_waits_for_a_repair_if_it_is_this_plugins_own() -> None:
    own = names.host_veth("cluster-a", "A-1", "eth0")
    for port, expected in ((own, [((own, MAC, True), True)]), ("veth1", [])):
        state = whole()
        state.ports, state.closed, state.fixed = {port}, {port}, {(port, MAC)}
        found = differences([TREE], [entry(minor=0x10, port=port)], state)
        assert [(one.port, one.waits) for one in found if one.port] == expected
        state.hairpins = {port}
        assert not [one for one in differences([TREE], [entry(minor=0x10, port=port)], state) if one.port]


def test_as_many_packets_may_wait_for_a_neighbour_as_are_set() -> None:
    state = whole()
    state.uplinks["eth0"].waiting = {"arp_cache": uplinks.MOST_WAITING, "ndisc_cache": 0}
    assert differences([TREE], [entry(minor=0x10)], state) == []


@pytest.mark.parametrize(("now", "is_anothers"), [(7, False), (8, True)])
def test_a_link_of_the_name_that_is_another_is_not_closed_for_a_pod_that_is_gone(
    now: int, is_anothers: bool
) -> None:
    dead = entry(minor=0x10, link=7)
    state = whole()
    state.links, state.closed = {"veth1": now}, set()
    found = differences([TREE], [dead], state)
    assert [one.port for one in found if one.port] == ([] if is_anothers else [("veth1", MAC, False)])
    its = [one for one in found if '"veth1"' in one.text]
    assert all(one.waits and one.nft.startswith("delete") for one in its)
    assert bool(its) is is_anothers
