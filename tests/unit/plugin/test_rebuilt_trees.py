from __future__ import annotations

from copy import copy
from pathlib import Path

import pytest
from concorde import rebuild
from concorde.node import messages
from concorde.node.ledger import Ledger
from concorde.node.records import Entry, Fabric, Tree

from tests.unit.plugin.node.examples import GIGA, TREE, entry

PLANT, OTHER = Tree("eth1", GIGA, 0, ()), Tree("eth0", GIGA, 0, ())
ON_PLANT = entry("A-2", 1, 2, uplink="eth1")


@pytest.mark.parametrize(
    ("former", "told", "entries", "trees"),
    [
        ([], [TREE, PLANT, TREE], [], [TREE, PLANT]),
        ([TREE], [OTHER, OTHER], [], [OTHER]),  # a bit of the ledger's
        ([TREE], [OTHER, TREE, PLANT], [], [TREE, PLANT]),  # networks differ
        ([TREE, PLANT], [TREE], [ON_PLANT], [TREE, PLANT]),  # it alone tells of that
        ([TREE, PLANT], [TREE], [entry()], [TREE]),
        ([TREE, PLANT], [], [], [TREE, PLANT]),
    ],
)
def test_each_uplink_has_the_tree_that_its_networks_tell_of(
    former: list[Tree], told: list[Tree], entries: list[Entry], trees: list[Tree]
) -> None:
    said: list[str] = []
    assert rebuild._trees(former, told, entries, said) == trees
    assert [line.startswith("the ledger said ") for line in said] == [True] * (
        bool(former and told) and {*map(rebuild._text, former)} != {*map(rebuild._text, trees)}
    )


def test_classes_of_other_nodes_are_no_configuration_and_kept(tmp_path: Path) -> None:
    woven = Tree("eth0", GIGA, 0, (), fabric=Fabric(("10.0.0.0/8",), 1000, 1))
    known = copy(woven)
    known.peers = {1: 0xA000}
    said: list[str] = []
    (kept,) = rebuild._trees([known], [woven], [entry()], said)
    assert (kept, kept.peers, said) == (woven, known.peers, [])
    slow = Tree("eth0", GIGA // 2, 0, ())
    assert "peers" not in messages.contradiction(known, slow, {"cluster-a"})
    assert known.downlink == woven.downlink
    new = Ledger(str(tmp_path))
    with new:
        new.restore_entries([kept], [])
    assert [tree.peers for tree in new.trees()] == [known.peers]
