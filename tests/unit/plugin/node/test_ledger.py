from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from concorde.cni import ALREADY_ATTACHED, NO_BANDWIDTH, UPLINK_CONFLICT, CniError
from concorde.node.ledger import Ledger
from concorde.node.records import Entry, Tree

from tests.unit.plugin.node.examples import GIGA, TREE, entry


def admit(ledger: Ledger, wanted: Entry, tree: Tree = TREE) -> Entry:
    with ledger:
        ledger.admit(tree, wanted)
    return wanted


def drop(ledger: Ledger, one: Entry) -> None:
    with ledger:
        ledger.drop(one.key)


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
    assert ledger.promised(TREE) == TREE.promisable
    drop(ledger, first)
    assert admit(ledger, entry("A-4", GIGA, 4)).minor == 0x10
    assert admit(ledger, entry("A-5", 0, 5)).minor == 0x12
    assert admit(ledger, entry("A-6", 0, 6, ceil=0)).minor is None  # of a network that has no part in it
    assert refused(ledger, entry("A-4", 1, 6)).code == ALREADY_ATTACHED
    assert "belongs to cluster-a A-4" in refused(ledger, entry("A-7", 1, 4)).msg


def test_who_is_promised_nothing_comes_where_more_is_promised_than_there_is(tmp_path: Path) -> None:
    """As a version left it that counted layer 2: none of its promises is taken back."""
    ledger = Ledger(str(tmp_path))
    ethernet = Tree(TREE.uplink, TREE.capacity, TREE.reserve, TREE.ports)
    with ledger:
        ledger.replace_tree(None, ethernet)
        ledger.enter(entry("A-1", TREE.promisable, minor=0x10))
    assert ledger.promised(TREE) > ethernet.promisable
    assert admit(ledger, entry("A-2", 0, 2, port="v2"), ethernet).minor == 0x11
    assert refused(ledger, entry("A-3", 1, 3), ethernet).code == NO_BANDWIDTH


def test_minors_have_no_gaps(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    entries = [admit(ledger, entry(f"A-{n}", 1000, n)) for n in range(1, 6)]
    for number in (1, 3):
        drop(ledger, entries[number])
    minors = [admit(ledger, entry(f"B-{n}", 1000, 10 + n)).minor for n in range(3)]
    assert minors == [0x11, 0x13, 0x15]


def test_another_networks_promises_hold_the_configuration(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    admit(ledger, entry())
    other = Tree("eth0", 10 * GIGA, 200_000_000, (22,))
    assert refused(ledger, entry("B-1", 1, 2, network="cluster-b"), other).code == UPLINK_CONFLICT
    admit(ledger, entry("A-2", 1, 3), other)
    assert ledger.trees() == [other]
    assert refused(ledger, entry("A-3", 1, 4), Tree("eth0", GIGA, 0, (22,))).code == NO_BANDWIDTH
    assert refused(ledger, entry("A-3", 1, 4), Tree("eth1", 10 * GIGA, 0, ())).code == UPLINK_CONFLICT


def test_each_uplink_has_a_tree_and_promises_of_its_own(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    small = Tree("eth1", GIGA, 0, (443,), overhead=0)
    with ledger:
        for tree in (TREE, small):
            ledger.replace_tree(None, tree)
    first = admit(ledger, entry("A-1", 8 * GIGA))
    second = admit(ledger, entry("A-2", 600_000_000, 2, port="v2", uplink="eth1"), small)
    assert (first.minor, second.minor) == (0x10, 0x11)  # a mark says no uplink
    assert (ledger.promised(TREE), ledger.promised(small)) == (8 * GIGA, 600_000_000)
    error = refused(ledger, entry("A-3", 500_000_000, 3, uplink="eth1"), small)
    assert error.code == NO_BANDWIDTH
    assert "on eth1: it takes 500 Mbit/s there, and 400 Mbit/s of 1 Gbit/s are free" in error.msg
    assert "A-1" not in error.msg
    assert [ledger.tree_of(one) for one in ledger.entries()] == [TREE, small]
    larger = Tree("eth1", 2 * GIGA, 0, (443,), overhead=0)
    assert admit(ledger, entry("A-3", 500_000_000, 3, port="v3", uplink="eth1"), larger).minor == 0x12
    assert ledger.trees() == [TREE, larger]
    with ledger:
        ledger.replace_tree(larger, None)
    assert ledger.trees() == [TREE]


def test_a_network_has_one_uplink_and_nobodys_tree_gives_way(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    small, third = Tree("eth1", GIGA, 0, ()), Tree("eth2", GIGA, 0, ())
    plant = entry("A-2", 0, 2, port="v2", network="plant", uplink="eth1")
    admit(ledger, entry())
    assert ledger.former(small, "plant") is None
    admit(ledger, plant, small)
    assert ledger.trees() == [TREE, small]
    for tree, network, former in (
        (small, "cluster-b", small),  # of that uplink
        (third, "plant", small),  # the network's own
        (third, "cluster-b", None),
    ):
        assert ledger.former(tree, network) == former
    shared = entry("B-1", 1, 3, port="v3", network="cluster-b", uplink="eth1")
    admit(ledger, shared, small)
    assert refused(ledger, entry("A-4", 1, 4, network="plant"), third).code == UPLINK_CONFLICT
    assert ledger.gives_up(plant) is None
    with ledger:
        ledger.leave(shared.key)
    assert ledger.gives_up(plant) == small
    with ledger:
        ledger.leave(plant.key)
    assert ledger.former(third, "cluster-b") == small  # nobody is in it
    with ledger:
        ledger.replace_tree(small, None)
    assert ledger.gives_up(entry()) is None  # a node keeps one


def test_a_promise_may_have_a_peer(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    admit(ledger, entry("A-1", GIGA, peer="172.16.2.2"))
    assert [one.peer for one in ledger.entries()] == ["172.16.2.2"]
    assert ledger.promised(TREE) == GIGA


def receiver(name: str, inward: int, address: int, answers: int | None = None, **keys: Any) -> Entry:
    """One that is promised so much of what arrives, and for its answers, or a twentieth (bits per second)."""
    answers = inward // 20 if answers is None else answers
    promised = {"ingress": inward, "inward": inward, "answers": answers, "guarantee": None}
    made = entry(name, answers, address, port=f"v{address}", **keys)
    made.__dict__.update(promised)
    return made


def test_what_arrives_is_promised_up_to_the_same_on_every_networks_behalf(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    first = admit(ledger, receiver("A-1", 6 * GIGA, 1))
    admit(ledger, receiver("B-1", 2 * GIGA, 2, network="cluster-b"))
    assert ledger.promised(TREE.downlink) == 8 * GIGA
    assert ledger.promised(TREE) == 400_000_000  # answers, and nothing else
    error = refused(ledger, receiver("A-2", GIGA, 3))
    assert error.code == NO_BANDWIDTH
    assert error.msg == (
        "no room for a guarantee of 1 Gbit/s for what is received on eth0: it takes 1 Gbit/s there, and 820"
        " Mbit/s of 8.82 Gbit/s are free; held by cluster-a 6 Gbit/s (1 pod), cluster-b 2 Gbit/s (1 pod);"
        " most by cluster-a A-1 6 Gbit/s, cluster-b B-1 2 Gbit/s"
    )
    assert len(ledger.entries()) == 2
    drop(ledger, first)
    assert admit(ledger, receiver("A-2", GIGA, 3)).minor == 0x10
    assert [(one.ingress, one.inward, one.minor) for one in ledger.entries()] == [
        (GIGA, GIGA, 0x10),
        (2 * GIGA, 2 * GIGA, 0x11),
    ]


def test_who_fits_one_way_alone_is_refused(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    admit(ledger, entry("A-1", 8 * GIGA + 800_000_000))
    assert "on eth0: it takes 50 Mbit/s there" in refused(ledger, receiver("A-2", GIGA, 2)).msg
    admit(ledger, receiver("A-3", 400_000_000, 3))
    assert refused(ledger, entry("A-4", 1, 4)).code == NO_BANDWIDTH


def test_what_arrives_holds_the_configuration_too(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    first = admit(ledger, receiver("A-1", 6 * GIGA, 1))
    small = Tree("eth0", 5 * GIGA, 0, (22,), overhead=0)
    error = refused(ledger, entry("A-2", 0, 2, port="v2"), small)
    assert error.code == NO_BANDWIDTH
    assert "6 Gbit/s are promised on eth0 for what is received, more than the 5 Gbit/s" in error.msg
    with ledger:
        ledger.leave(first.key)
    assert (ledger.promised(TREE.downlink), ledger.entries()) == (0, [])
    admit(ledger, receiver("A-1", 5 * GIGA, 1), small)
    moved = Tree("eth1", 5 * GIGA, 0, (22,), overhead=0)
    with ledger:
        ledger.replace_tree(small, moved)
    assert (ledger.promised(small.downlink), ledger.promised(moved.downlink)) == (0, 5 * GIGA)


def test_another_promise_is_admitted_as_a_new_one_and_less_always_is(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    before = admit(ledger, entry("A-1", 8 * GIGA))
    admit(ledger, entry("B-1", 500_000_000, 2, port="v2", network="cluster-b"))

    def change(rate: int) -> Entry:
        after = entry("A-1", rate, minor=before.minor)
        found = ledger.find(before.key)
        assert found is not None
        with ledger:
            ledger.change(TREE, found, after)
        return after

    with pytest.raises(CniError, match="held by cluster-b 500 Mbit/s") as caught:
        change(8 * GIGA + 500_000_000)
    assert caught.value.code == NO_BANDWIDTH
    assert ledger.changed() == {}
    change(8 * GIGA + 320_000_000)
    assert ledger.promised(TREE) == TREE.promisable
    small = Tree("eth0", GIGA, 0, (22,), overhead=0)
    with ledger:
        ledger.replace_tree(TREE, small)  # as if it had been promised before a link became slow
        with pytest.raises(CniError):
            ledger.change(small, before, entry("A-1", 9 * GIGA))
        ledger.replace_tree(small, TREE)
    change(GIGA)
    assert ledger.changed() == {before.key: {"egress": 8 * GIGA}}  # what the configuration goes on saying
    assert ledger.promised(TREE) == GIGA + 500_000_000
    drop(ledger, before)
    assert ledger.changed() == {}


def test_what_is_received_is_changed_where_both_ends_have_room(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    before = admit(ledger, receiver("A-1", 5 * GIGA, 1, 250_000_000))
    admit(ledger, entry("B-1", 8 * GIGA, 2, port="v2", network="cluster-b"))
    admit(ledger, receiver("B-2", 3 * GIGA, 3))

    def change(ingress: int, answers: int) -> None:
        found = ledger.find(before.key)
        assert found is not None
        with ledger:
            ledger.change(TREE, found, receiver("A-1", ingress, 1, answers))

    for ingress, answers, words in (
        (6 * GIGA, 300_000_000, "6 Gbit/s for what is received on eth0: .*held by cluster-a 3 Gbit/s"),
        (5 * GIGA, 900_000_000, "900 Mbit/s for answers on eth0: .*most by cluster-b B-1 8 Gbit/s"),
    ):
        with pytest.raises(CniError, match=words) as caught:
            change(ingress, answers)
        assert caught.value.code == NO_BANDWIDTH
        assert ledger.changed() == {}
        assert ledger.promised(TREE.downlink) == 8 * GIGA
    change(5_500_000_000, 275_000_000)
    change(GIGA, 50_000_000)
    assert (ledger.promised(TREE.downlink), ledger.promised(TREE)) == (4 * GIGA, 8_200_000_000)
    assert ledger.changed() == {before.key: {"ingress": 5 * GIGA}}
    change(0, 0)
    (found,) = [one for one in ledger.entries() if one.key == before.key]
    assert (found.ingress, found.inward, found.rate) == (None, 0, 0)
    assert ledger.promised(TREE.downlink) == 3 * GIGA


def test_who_only_reads_has_a_moments_copy_and_makes_nothing(tmp_path: Path) -> None:
    assert Ledger(str(tmp_path), reading=True).entries() == []
    assert list(tmp_path.iterdir()) == []
    book = Ledger(str(tmp_path))
    with book:
        book.enter(entry())
    reading = Ledger(str(tmp_path), reading=True)
    with book:
        book.drop(entry().key)
    assert [vars(one) for one in reading.entries()] == [vars(entry())]
    with reading:
        reading.replace_tree(None, TREE)
    assert (book.trees(), book.entries()) == ([], [])
