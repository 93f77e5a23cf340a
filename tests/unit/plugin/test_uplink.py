from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from concorde import guarantees, program, requests
from concorde.cni import ALREADY_ATTACHED, NO_BANDWIDTH, UPLINK_CONFLICT, CniError
from concorde.configuration import Configuration
from concorde.node import htb, observe, report, tables, uplinks, words
from concorde.node.differences import differences
from concorde.node.ledger import Ledger
from concorde.node.terms import Entry, Tree, uplink_rate
from concorde.terms import terms
from hypothesis import given
from hypothesis import strategies as st

GIGA = 10**9
TREE = Tree("eth0", 9 * GIGA, 180_000_000, (22,))
MAC = "0a:58:ac:10:01:02"


def entry(name: str = "A-1", rate: int = GIGA, address: int = 0xAC100102, **keys: Any) -> Entry:
    given: dict[str, Any] = {"network": "cluster-a", "pod": "", "way": "cni-a", "port": "veth1", "mac": MAC}
    values = {**given, "ceil": 9 * GIGA, **keys}
    return Entry(
        container=name, interface="eth0", address=address, guarantee=rate or None, rate=rate, **values
    )


@pytest.mark.parametrize(
    ("count", "mtu", "encapsulation", "rate"),
    [
        ("layer2", 1450, 50, -(-GIGA * 1514 // 1464)),
        ("payload", 1450, 50, -(-GIGA * 1514 // 1398)),
        ("layer2", 1500, 0, GIGA),
    ],
)
def test_a_guarantee_grows_by_the_overlays_headers(
    count: str, mtu: int, encapsulation: int, rate: int
) -> None:
    assert uplink_rate(GIGA, count, mtu, encapsulation) == rate


def test_the_default_class_has_exactly_what_is_not_promised() -> None:
    assert htb.default_rate(TREE, 5 * GIGA) == 3_820_000_000
    assert htb.default_rate(TREE, TREE.promisable) == htb.LEAST_RATE


@given(st.integers(1000, 10**12))
def test_every_burst_is_a_millisecond_or_a_packet_and_fits_the_kernels_clock(rate: int) -> None:
    burst = htb.burst(rate)
    assert burst * 8 <= 200 * rate
    assert burst >= min(65536, rate * 200 // 8)
    assert burst <= max(65536, rate // 8 // 1000)


def test_a_class_and_its_queue() -> None:
    given_entry = entry(minor=0x10, ceil=2 * GIGA)
    assert htb.add_class(TREE, 0x10, GIGA, given_entry).splitlines() == [
        "class add dev eth0 parent c0de:1 classid c0de:10 htb prio 0 rate 1000000000bit ceil 2000000000bit"
        " burst 375000b cburst 250000b quantum 65536",
        "qdisc replace dev eth0 parent c0de:10 handle 10: bfifo limit 1250000",
    ]


def test_the_tree_is_planted_with_all_that_catches_packets_before_any_pod() -> None:
    lines = htb.plant(TREE, 0).splitlines()
    assert lines[0] == "qdisc add dev eth0 root handle c0de: htb default fffe"
    assert lines[1].startswith("class add dev eth0 parent c0de: classid c0de:1 htb")
    assert lines[2].startswith("class add dev eth0 parent c0de:1 classid c0de:fffe")
    assert "rate 180000000bit ceil 9000000000bit" in lines[4]
    assert lines[-1].endswith("protocol arp pref 1 u32 match u32 0 0 classid c0de:fffd")


def test_an_attachments_elements() -> None:
    assert tables.change("add", tables.elements(entry(minor=0x1F))).splitlines() == [
        'add element ip concorde ways { "cni-a" . 172.16.1.2 }',
        "add element ip concorde classes { 172.16.1.2 : c0de:1f }",
        'add element ip concorde refused { "cni-a" . 172.16.1.2 }',
        'add element bridge concorde dropped { "veth1" }',
        'add element bridge concorde floods { "veth1" }',
        f'add element bridge concorde frames {{ "veth1" . {MAC} . 172.16.1.2 }}',
        f'add element bridge concorde frames6 {{ "veth1" . {MAC} . :: }}',
        f'add element bridge concorde frames6 {{ "veth1" . {MAC} . fe80::858:acff:fe10:102 }}',
        'add element bridge concorde targets6 { "veth1" . 0xfe800000000000000858acfffe100102 }',
        "add element bridge concorde addresses { 172.16.1.2 }",
        'add element bridge concorde guarded { "veth1" }',
    ]


def test_further_addresses_are_the_pods_own_too() -> None:
    found = tables.elements(entry(others="10.0.0.7 fd00::7"))
    assert ("ip", "ways", '"cni-a" . 10.0.0.7') in found
    assert ("bridge", "frames", f'"veth1" . {MAC} . 10.0.0.7') in found
    assert ("bridge", "frames6", f'"veth1" . {MAC} . fd00::7') in found
    assert ("bridge", "targets6", f'"veth1" . 0x{0xFD << 120 | 7:032x}') in found


def test_a_routed_veth_is_guarded_by_a_chain_of_its_own() -> None:
    routed = entry(port="", way="veth9")
    assert tables.families([routed]) == ["ip", "ip6", "bridge", "netdev"]
    assert {family for family, _, _ in tables.elements(routed)} == {"ip", "netdev"}
    element = ("netdev", tables.INGRESS, '"veth9"')
    assert element in tables.elements(routed)
    assert tables.change("add", [element]).splitlines() == [
        'add chain netdev concorde at-veth9 { type filter hook ingress device "veth9" priority -300;'
        " policy accept; }",
        "flush chain netdev concorde at-veth9",
        'add rule netdev concorde at-veth9 goto port comment "what a pod may send"',
    ]


def test_nobodys_port_is_guarded_whose_hardware_address_is_unknown() -> None:
    assert {family for family, _, _ in tables.elements(entry(mac=""))} == {"ip"}
    assert tables.elements(entry(mac="", way="", port="")) == []


def test_without_control_ports_no_rule_names_any() -> None:
    assert "tcp" not in tables.chain("ip", "postrouting", Tree("eth0", GIGA, 0, ()))
    every = Tree("eth0", GIGA, 0, tuple(range(65521, 65536)))
    for _, rules in tables.chains(every).values():
        assert max(map(len, tables.comments(rules))) <= 128


def test_a_rule_that_is_another_has_another_comment() -> None:
    assert tables.comments([("drop", "x")]) != tables.comments([("accept", "x")])


TC_CLASSES = """\
class htb c0de:10 parent c0de:1 leaf 10: prio 0 rate 1Gbit ceil 9Gbit burst 125000b cburst 1125000b
class htb c0de:1 root rate 9Gbit ceil 9Gbit burst 1125000b cburst 1125000b
class htb c0de:fffe parent c0de:1 leaf fffe: prio 0 rate 7820Mbit ceil 9Gbit burst 1b cburst 1125000b
class htb c0de:fffd parent c0de:1 leaf fffd: prio 0 rate 180Mbit ceil 9Gbit burst 65520b cburst 1125000b
"""
TC_QDISCS = """[
{"kind":"htb","handle":"c0de:","root":true,"refcnt":3,"options":{"r2q":10,"default":"0xfffe"}},
{"kind":"bfifo","handle":"10:","parent":"c0de:10","options":{"limit":1250000}},
{"kind":"bfifo","handle":"fffd:","parent":"c0de:fffd","options":{"limit":11250000}},
{"kind":"bfifo","handle":"fffe:","parent":"c0de:fffe","options":{"limit":11250000}}]"""
TC_FILTERS = """[{"protocol":"arp","pref":1,"kind":"u32","chain":0},
{"protocol":"arp","pref":1,"kind":"u32","chain":0,"options":{"fh":"800::800","flowid":"c0de:fffd"}}]"""


def listing(family: str, present: set[tuple[str, str, str]]) -> str:
    """What `nft -j list table` prints of elements, where all chains are as made."""
    objects: list[Any] = [{"metainfo": {"version": "1.0.6"}}]
    for (of, name), (kind, _) in tables.SETS.items():
        found = [said(text) for its, set_name, text in sorted(present) if (its, set_name) == (of, name)]
        if of == family:
            objects.append({kind: {"name": name, "elem": found}})
    for (of, name), (_, rules) in tables.chains(TREE).items():
        if of == family:
            objects.append({"chain": {"name": name}})
            objects += [{"rule": {"chain": name, "comment": text}} for text in tables.comments(rules)]
    return json.dumps({"nftables": objects})


def said(text: str) -> Any:
    key, mapped, value = text.partition(" : ")
    parts = [part.strip('"') for part in key.split(" . ")]
    return [parts[0], value] if mapped else {"concat": parts} if len(parts) > 1 else parts[0]


def whole() -> observe.State:
    state = observe.State()
    observe.read_qdiscs(state, TC_QDISCS)
    observe.read_classes(state, TC_CLASSES)
    observe.read_filters(state, TC_FILTERS)
    present = {*tables.elements(entry(minor=0x10))}
    for family in tables.families([entry()]):
        observe.read_table(state, family, listing(family, present))
    settings = {"learning": False, "flood": False, "multicast_router": 0, "group_fwd_mask": "0xfffd"}
    port = {"ifname": "veth1", "linkinfo": {"info_slave_data": settings}}
    fixed = {"ifname": "veth1", "mac": MAC, "state": "static", "flags": ["sticky"]}
    observe.read_ports(state, json.dumps([{}, port]), json.dumps([fixed]))
    return state


def test_what_was_made_is_read_back_without_a_difference() -> None:
    assert [d.text for d in differences(TREE, [entry(minor=0x10)], whole())] == []


def test_a_repair_lowers_the_default_class_first_and_raises_it_last() -> None:
    found = differences(TREE, [entry(minor=0x11)], whole())
    assert [d.text.partition(" of eth0")[0] for d in found[:2]] == [
        "class c0de:10",
        "class c0de:11 of cluster-a A-1",
    ]
    lines = "".join(d.tc for d in found).splitlines()
    assert "rate 8000bit" in lines[0]
    assert lines[1] == "class delete dev eth0 classid c0de:10"
    assert "class change dev eth0 parent c0de:1 classid c0de:fffe htb prio 0 rate 7820000000bit" in lines[-1]
    assert "".join(d.nft for d in found).splitlines() == [
        "delete element ip concorde classes { 172.16.1.2 : c0de:10 }",
        "add element ip concorde classes { 172.16.1.2 : c0de:11 }",
    ]


@pytest.mark.parametrize(
    ("shown", "root"),
    [
        ("", "default"),
        ('[{"kind":"fq_codel","handle":"0:","root":true,"options":{}}]', "default"),
        ('[{"kind":"mq","handle":"0:","root":true},{"kind":"fq","handle":"0:","parent":":1"}]', "default"),
        ('[{"kind":"fq_codel","handle":"8001:","root":true,"options":{}}]', "fq_codel 8001:"),
        ('[{"kind":"htb","handle":"c0de:","root":true,"options":{"default":"0x1"}}]', "htb c0de:"),
        (TC_QDISCS, "ours"),
    ],
)
def test_whose_the_root_qdisc_is(shown: str, root: str) -> None:
    state = observe.State()
    observe.read_qdiscs(state, shown)
    assert state.root == root


def test_the_default_route_with_the_least_metric_counts() -> None:
    lines = [
        "eth1\t00000000\t0101A8C0\t0003\t0\t0\t200\t00000000\t0\t0\t0",
        "eth0\t00000000\t0102A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0",
        "eth2\t0000A8C0\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0",
    ]
    assert uplinks.default_device(lines) == "eth0"
    assert uplinks.default_device(lines[2:]) is None


def admit(ledger: Ledger, wanted: Entry, tree: Tree = TREE) -> Entry:
    with ledger:
        ledger.admit(tree, wanted)
    return wanted


def refused(ledger: Ledger, wanted: Entry, tree: Tree = TREE) -> CniError:
    with pytest.raises(CniError) as caught:
        admit(ledger, wanted, tree)
    return caught.value


def test_the_ledger_admits_up_to_capacity_less_reserve(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    first = admit(ledger, entry("A-1", 8 * GIGA))
    last = admit(ledger, entry("A-2", 820_000_000, 2, port="v2"))
    assert (first.minor, last.minor) == (0x10, 0x11)
    error = refused(ledger, entry("A-3", 1000, 3))
    assert error.code == NO_BANDWIDTH
    assert ledger.promised() == TREE.promisable
    ledger.drop(first.key)
    assert admit(ledger, entry("A-4", GIGA, 4)).minor == 0x10
    assert admit(ledger, entry("A-5", 0, 5)).minor is None
    assert refused(ledger, entry("A-4", 1, 6)).code == ALREADY_ATTACHED
    assert "belongs to cluster-a A-4" in refused(ledger, entry("A-7", 1, 4)).msg


def test_minors_have_no_gaps(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    entries = [admit(ledger, entry(f"A-{n}", 1000, n)) for n in range(1, 6)]
    for number in (1, 3):
        ledger.drop(entries[number].key)
    minors = [admit(ledger, entry(f"B-{n}", 1000, 10 + n)).minor for n in range(3)]
    assert minors == [0x11, 0x13, 0x15]


def test_another_networks_promises_hold_the_configuration(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    admit(ledger, entry())
    other = Tree("eth0", 10 * GIGA, 200_000_000, (22,))
    assert refused(ledger, entry("B-1", 1, 2, network="cluster-b"), other).code == UPLINK_CONFLICT
    admit(ledger, entry("A-2", 1, 3), other)
    assert ledger.tree() == other
    assert refused(ledger, entry("A-3", 1, 4), Tree("eth0", GIGA, 0, (22,))).code == NO_BANDWIDTH
    assert refused(ledger, entry("A-3", 1, 4), Tree("eth1", 10 * GIGA, 0, ())).code == UPLINK_CONFLICT


def test_a_refusal_names_the_largest_holders_and_stays_short() -> None:
    entries = [
        entry("c" * 200, 1_000_000 + n, n, network=f"{n % 9}-" + "n" * 190, pod="p" * 250) for n in range(500)
    ]
    text = words.refusal(TREE, entries, entry("A-1", 9 * GIGA))
    assert len(text) < 900
    assert "8.319 Gbit/s of 8.82 Gbit/s are free" in text
    assert "and 6 more" in text


@pytest.mark.parametrize(
    ("rate", "text"),
    [(999, "999 bit/s"), (1000, "1 kbit/s"), (1_034_153_006, "1.034 Gbit/s"), (10**12, "1 Tbit/s")],
)
def test_rates_for_people(rate: int, text: str) -> None:
    assert words.rate(rate) == text


def test_the_table_lists_all_pods_and_what_was_dropped_of_them() -> None:
    entries = [entry("A-2", 0, 2), entry(minor=0x10, pod="default/web")]
    counted = {("bridge", "dropped", '"veth1"'): 3, ("ip", "refused", '"cni-a" . 172.16.1.2'): 4}
    lines = report.as_table(TREE, entries, report.dropped(entries, counted)).splitlines()
    first = "c0de:10  cluster-a  default/web  172.16.1.2  1 Gbit/s   1 Gbit/s   9 Gbit/s  7"
    assert lines[-2:] == [
        first,
        "-        cluster-a  A-2          0.0.0.2     -          -          -         3",
    ]


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ("K8S_POD_NAME=web;IgnoreUnknown=1;K8S_POD_NAMESPACE=default", "default/web"),
        ("K8S_POD_NAME=web", ""),
        ("K8S_POD_NAMESPACE=a b;K8S_POD_NAME=web", ""),
        ("", ""),
        ("=;;=", ""),
    ],
)
def test_the_pods_name_is_taken_from_the_runtimes_arguments(arguments: str, name: str) -> None:
    assert requests.pod_name(arguments) == name


def test_the_command_line() -> None:
    assert program.parse(["ledger"]) == ("ledger", False, "/run/concorde")
    assert program.parse(["ledger", "--json", "--state-dir=/x"]) == ("ledger", True, "/x")
    assert program.parse(["reconcile", "--state-dir", "/x"]) == ("reconcile", False, "/x")
    arguments = ["rebuild", "--cache", "/a", "--state-dir=/x", "--cache=/b"]
    assert program.split(arguments) == (["/a", "/b"], ["rebuild", "--state-dir=/x"])


def test_with_enforcement_node_the_capability_is_a_ceiling() -> None:
    runtime: dict[str, Any] = {"bandwidth": {"EgressRate": 2 * GIGA}}
    keys = {"name": "a", "enforcement": "node", "runtimeConfig": runtime}
    found = terms(Configuration(keys), 1450)
    assert (found.guarantee, found.ceiling, found.rate) == (None, 2 * GIGA, 2 * GIGA)
    runtime["io.kubernetes.cri.pod-annotations"] = {guarantees.GUARANTEE: "1G"}
    found = terms(Configuration(keys), 1450)
    assert (found.guarantee, found.ceiling, found.rate) == (GIGA, 2 * GIGA, 2 * GIGA)
