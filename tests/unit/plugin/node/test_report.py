from __future__ import annotations

import json
from typing import Any

from concorde.node import report
from concorde.node.records import Fabric, Tree

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
    rates = (
        "1 Gbit/s   -        1 Gbit/s   9 Gbit/s  -        7",
        "-          -        -          -         -        3",
    )
    assert lines[-2:] == [
        f"c0de:10  cluster-a  default/web  172.16.1.2  eth0    {rates[0]}",
        f"-        cluster-a  A-2          0.0.0.2     -       {rates[1]}",
    ]


def test_what_arrives_is_told_of_a_link_and_of_a_pod() -> None:
    received: dict[str, Any] = {"answers": GIGA // 20, "ingress": GIGA, "inward": GIGA + 1}
    entries = [entry(rate=GIGA // 20, minor=0x10, **received), entry("A-2", 0, 2)]
    woven = Tree("eth0", 9 * GIGA, 180_000_000, (22,), overhead=0, fabric=Fabric(("10.0.0.0/8",), GIGA, 1))
    table = report.as_table([woven], entries, {})
    assert "\ningress   1 Gbit/s promised, 7.819 Gbit/s free\n" in table
    assert table.splitlines()[-2].split()[-3:] == ["1", "Gbit/s", "0"]
    told = json.loads(report.as_json([woven], entries, {}))
    assert (told["trees"][0]["ingressPromised"], told["trees"][0]["ingressFree"]) == (
        GIGA + 1,
        TREE.promisable - GIGA - 1,
    )
    rates = [(one["ingress"], one["ingressRate"]) for one in told["attachments"]]
    assert rates == [(GIGA, GIGA + 1), (None, 0)]
