from __future__ import annotations

from concorde.node import tables
from concorde.node.records import Tree

from tests.unit.plugin.node.examples import GIGA, MAC, entry


def test_an_attachments_elements() -> None:
    assert tables.change("add", tables.elements(entry(minor=0x1F))).splitlines() == [
        'add element ip concorde ways { "cni-a" . 172.16.1.2 }',
        'add element ip concorde efforts { "cni-a" . 172.16.1.2 : c0de:401f }',
        'add element ip concorde promises { "cni-a" . 172.16.1.2 : c0de:1f }',
        'add element ip concorde spoken { "cni-a" . 172.16.1.2'
        " limit rate over 125000 bytes/second burst 3000 bytes }",
        'add element ip concorde acknowledged { "cni-a" . 172.16.1.2'
        " limit rate over 125000 bytes/second burst 3000 bytes }",
        'add element ip concorde refused { "cni-a" . 172.16.1.2 }',
        'add element ip6 concorde refused { "cni-a" . fe80::858:acff:fe10:102 }',
        'add element ip concorde new_hops { "cni-a" . 172.16.1.2 }',
        'add element ip concorde fragments { "cni-a" . 172.16.1.2 }',
        'add element ip6 concorde fragments { "cni-a" . fe80::858:acff:fe10:102 }',
        'add element ip concorde opening { "cni-a" . 172.16.1.2 }',
        'add element bridge concorde dropped { "veth1" }',
        'add element bridge concorde floods { "veth1" }',
        f'add element bridge concorde frames {{ "veth1" . {MAC} . 172.16.1.2 }}',
        f'add element bridge concorde subjects {{ "veth1" . {0xAC100102} }}',
        f'add element bridge concorde frames6 {{ "veth1" . {MAC} . :: }}',
        f'add element bridge concorde frames6 {{ "veth1" . {MAC} . fe80::858:acff:fe10:102 }}',
        'add element bridge concorde targets6 { "veth1" . 0xfe800000000000000858acfffe100102 }',
        "add element bridge concorde addresses { 172.16.1.2 }",
        'add element bridge concorde guarded { "veth1" }',
    ]


def test_what_counts_packets_is_all_of_an_attachments_that_counts() -> None:
    for one in (entry(minor=0x1F), entry(port="")):
        counts = [e for e in tables.elements(one) if e[1] != tables.INGRESS and tables.counts(*e[:2])]
        assert tables.counting(one) == counts
        assert counts


def test_a_limit_is_of_an_element_that_is_added_and_not_of_one_that_goes() -> None:
    found = tables.elements(entry(minor=0x10, rate=1_000_000))
    spoken = [element for element in found if element[1] == "spoken"]
    assert tables.change("delete", spoken) == 'delete element ip concorde spoken { "cni-a" . 172.16.1.2 }\n'
    # A share of a small promise is small; but a packet as large as they may be gets through at once.
    assert "over 125 bytes/second burst 3000 bytes" in tables.change("add", spoken)
    assert not [element for element in tables.elements(entry(rate=0)) if element[1] == "spoken"]


def test_of_answers_a_pod_without_a_guarantee_has_nothing_else_and_a_limit_that_fills_them() -> None:
    found = {name: text for _, name, text in tables.elements(entry(minor=0x10, rate=0))}
    assert not {"promises", "answers", "acknowledged"} & found.keys()
    alone = entry(minor=0x10, rate=0, answers=GIGA // 100)
    alone.rate = GIGA // 100
    found = {name: text for _, name, text in tables.elements(alone)}
    assert found["answers"] == '"cni-a" . 172.16.1.2 : c0de:10'
    assert "promises" not in found
    assert found["spoken"].endswith("over 1250 bytes/second burst 3000 bytes")
    # 10 Mbit/s of smallest frames on the wire, of 128 bytes, in packets of 40.
    assert found["acknowledged"].endswith("over 391250 bytes/second burst 3000 bytes")
    both = {name: text for _, name, text in tables.elements(entry(minor=0x10, answers=GIGA // 100))}
    assert "answers" not in both
    assert both["promises"] == '"cni-a" . 172.16.1.2 : c0de:10'
    assert both["acknowledged"].endswith("over 515000 bytes/second burst 3000 bytes")


def test_further_addresses_are_the_pods_own_too() -> None:
    found = tables.elements(entry(others="10.0.0.7 fd00::7"))
    assert ("ip", "ways", '"cni-a" . 10.0.0.7') in found
    assert ("bridge", "frames", f'"veth1" . {MAC} . 10.0.0.7') in found
    assert ("bridge", "subjects", f'"veth1" . {0x0A000007}') in found
    assert ("bridge", "frames6", f'"veth1" . {MAC} . fd00::7') in found
    assert ("bridge", "targets6", f'"veth1" . 0x{0xFD << 120 | 7:032x}') in found


def test_each_address_of_a_pods_has_its_share_and_link_local_ones_are_not_routed() -> None:
    found = tables.elements(entry(others="fd00::7"))
    shares = {(family, name) for family, name, text in found if text.endswith("fd00::7")}
    assert {("ip6", name) for name in ("ways", "refused", "new_hops", "fragments")} <= shares
    local = {name for family, name, text in found if family == "ip6" and "fe80::" in text}
    assert local == {"refused", "fragments"}


def test_a_routed_veth_is_guarded_by_a_chain_of_its_own() -> None:
    routed = entry(port="", host_interface="veth9")
    every = ["ip", "ip6", "bridge", "netdev", "inet", "arp"]
    assert tables.families([routed], ipv6=True) == every
    assert {family for family, _, _ in tables.elements(routed)} == {*every} - {"bridge"}
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
    assert tables.elements(entry(mac="", host_interface="", port="")) == []


def test_without_control_ports_no_rule_names_any() -> None:
    none = tables.chain("ip", "postrouting", [Tree("eth0", GIGA, 0, ())])
    assert "sport" not in none
    assert "dport" not in none
    every = Tree("eth0", GIGA, 0, tuple(range(65521, 65536)))
    for _, rules in tables.chains([every]).values():
        assert max(map(len, tables.comments(rules))) <= 128


def test_a_rule_that_is_another_has_another_comment() -> None:
    assert tables.comments([("drop", "x")]) != tables.comments([("accept", "x")])


def test_a_pod_may_send_a_hundred_frames_a_second_to_many_and_twice_as_many_at_once() -> None:
    for family in ("bridge", "netdev", "inet", "arp"):
        _, content = tables.SETS[family, "floods"]
        assert content == "type ifname; limit rate over 100/second burst 200 packets"
