from __future__ import annotations

from concorde.node.differences import differences

from tests.unit.plugin.node.examples import TREE, entry, whole


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
