from __future__ import annotations

import json

from concorde.node import report
from concorde.node.records import Tree

from tests.unit.plugin.node.examples import GIGA, TREE, entry


def test_the_table_lists_all_pods_and_what_was_dropped_of_them() -> None:
    other = Tree("eth1", GIGA, 0, ())
    assert "uplink    eth1\n" in report.as_table([TREE, other], [], {})
    assert [tree["free"] for tree in json.loads(report.as_json([TREE, other], [entry()], {}))["trees"]] == [
        TREE.promisable - GIGA,
        other.promisable,
    ]
    entries = [entry("A-2", 0, 2), entry(minor=0x10, pod="default/web")]
    dropped = {entry.key: packets for entry, packets in zip(entries, (3, 7), strict=True)}
    lines = report.as_table([TREE], entries, dropped).splitlines()
    first = "c0de:10  cluster-a  default/web  172.16.1.2  eth0    1 Gbit/s   -        1 Gbit/s   9 Gbit/s  7"
    assert lines[-2:] == [
        first,
        "-        cluster-a  A-2          0.0.0.2     -       -          -        -          -         3",
    ]
