"""What people are told of a cluster's pod addresses: within 80 columns, of any size, and without colours."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import replace
from ipaddress import ip_network
from typing import Any

import pytest
from rich.console import Console

from bench.presentation import addresses, ranges
from edge.addresses.allocation import Allocator, Node
from edge.addresses.inventory import Inventory
from edge.addresses.selectors import Selector
from testbed.scenario import blocks, load
from tests import verbs
from tests.paths import ROOT
from tests.unit.edge.addresses.builders import STATION, config, inventory

SVG = "{http://www.w3.org/2000/svg}"
SMALL = {"n0": "", "n1": "size=small"}


def shown(of: Inventory, encoding: str = "utf-8", every: bool = False) -> str:
    out = io.TextIOWrapper(io.BytesIO(), encoding)
    addresses.show(Console(file=out, width=80), of, every)
    out.seek(0)
    return out.read()


def bars(of: Inventory, encoding: str = "utf-8") -> list[str]:
    """Return the rows of the drawing, each without its address."""
    return re.findall(r"^(?:10\.|fd00:)\S+ +([█▒·▁▂▃▄▅▆▇#x.+]{32,})$", shown(of, encoding), re.MULTILINE)


def having(told: list[tuple[str, str, str]], nodes: Mapping[str, tuple[str, str]]) -> Inventory:
    """Return an inventory of nodes that have a block of a config already."""
    allocator = Allocator()
    for one in told:
        allocator.add(config(*one))
    there = [Node(name, {}, (ip_network(block),)) for name, (block, _) in nodes.items()]
    for node in there:
        allocator.occupy(node, nodes[node.name][1])
    return Inventory("a", allocator, there, {})


def test_a_small_cluster_is_shown_with_each_node_and_each_range() -> None:
    text = shown(inventory(STATION, SMALL))
    assert text.startswith("cluster a: 2 nodes, all have a block\n")
    assert "large   any label   10.0.0.0/22    /24      1     3  1.98 %" in text
    assert "small   size=small  10.1.0.0/25    /27      1     3     0 %" in text
    assert "n0    large   10.0.0.0/24     5   253  1.98 %" in text
    assert "large: 10.0.0.0/22 by /24, 1 of 4 given, 3 free" in text
    assert "room for 6 more nodes like n1 (small, then large)" in text
    assert "first to run out if nodes come as they are there: " in text
    assert (
        "saved: 43.75 % of the IPv4 addresses that 2 nodes would have with a /24 each, 288 instead of 512"
        in text
    )


def test_what_is_drawn_are_shares_of_the_range() -> None:
    assert bars(inventory(STATION, SMALL)) == ["█" * 16 + "·" * 48] * 2
    assert bars(inventory(STATION, SMALL), "ascii") == ["#" * 16 + "." * 48] * 2


def test_a_large_range_has_four_rows_whose_parts_are_filled_by_degrees() -> None:
    told = [("all", "10.0.0.0/8:24", "")]
    nodes = {f"n{number}": (f"10.0.{number}.0/24", "all") for number in range(256)}
    nodes |= {f"m{number}": (f"10.1.{number}.0/24", "all") for number in range(128)}
    nodes["last"] = ("10.255.255.0/24", "all")
    rows = bars(having(told, nodes))
    assert rows == ["█▄" + "·" * 62, "·" * 64, "·" * 64, "·" * 63 + "▁"]
    assert "385 of 65,536 given, 65,151 free" in shown(having(told, nodes))


def test_what_an_overlapping_config_has_given_is_others() -> None:
    told = [("wide", "10.0.0.0/22:24", ""), ("narrow", "10.0.0.0/23:26", "")]
    of = having(told, {"n0": ("10.0.0.0/26", "narrow"), "n1": ("10.0.1.0/24", "wide")})
    wide, narrow = ranges.strips(of)
    assert [cell[1:] for cell in wide.cells] == [(0, 1, 0), (1, 0, 0), (0, 0, 1), (0, 0, 1)]
    assert [cell[1:] for cell in narrow.cells] == [(1, 0, 0), *[(0, 0, 1)] * 3, *[(0, 1, 0)] * 4]
    assert bars(of)[0] == "▒" * 16 + "█" * 16 + "·" * 32
    assert "wide: 10.0.0.0/22 by /24, 1 of 4 given, 1 taken by others, 2 free" in shown(of)


def test_without_any_config_the_network_around_all_blocks_is_drawn() -> None:
    of = having([], {"n0": ("10.0.1.0/24", ""), "n1": ("10.0.2.0/25", "")})
    (strip,) = ranges.strips(of)
    assert strip.headline() == "no config: 10.0.0.0/22 by /25, 3 of 8 given, 5 free"
    assert list(addresses.coming(of)) == []
    far = having([], {"n0": ("10.0.1.0/24", ""), "n1": ("192.168.2.0/24", "")})
    assert ranges.strips(far) == []
    assert "no config  192.168.2.0/24" in shown(far)


def test_each_family_is_drawn_and_none_is_wider_than_80_columns() -> None:
    of = inventory([("two", "10.0.0.0/20:24 fd00:10:20:30:40::/112:120", "")], {"n0": "", "n1": ""})
    text = shown(of)
    assert max(map(len, text.splitlines())) <= 80
    assert [len(row) for row in bars(of)] == [64, *[32] * 4]


def test_who_waits_is_told_by_reason() -> None:
    of = inventory(STATION[1:], {f"n{number}": "" for number in range(7)} | {"s": "size=small"})
    (line,) = addresses.waiting(of)
    assert line == "waiting: n0, n1, n2 and 4 more: small is for nodes with size=small: label the node so"
    assert shown(of).startswith("cluster a: 8 nodes, 7 without a block\n")


@pytest.mark.parametrize("count", [1_000, pytest.param(5_000, marks=pytest.mark.long(one_in=0))])
def test_of_many_nodes_the_fullest_are_shown_and_all_if_asked(count: int) -> None:
    told = [("all", "10.0.0.0/8:24", "")]
    nodes = {f"n{number}": (f"10.{number // 256}.{number % 256}.0/24", "all") for number in range(count)}
    of = replace(having(told, nodes), pods={f"n{number}": number % 250 for number in range(count)})
    text = shown(of)
    assert len(text.splitlines()) < 45
    assert f"the 20 fullest of {count:,} nodes (--all shows each)" in text
    assert re.search(r"^n249 +all +10\.0\.249\.0/24 +249 +253 +98\.42 %$", text, re.MULTILINE)
    assert len(shown(of, every=True).splitlines()) > count


def test_many_kinds_of_nodes_are_told_by_those_of_which_the_fewest_fit() -> None:
    told = [(f"c{number}", f"10.{number}.0.0/{22 - number % 3}:24", f"k=v{number}") for number in range(12)]
    lines = list(addresses.coming(inventory(told, {"n0": "k=v0", "n1": "k=v1"})))
    assert lines[0] == "room for 3 more nodes like n0 (c0)"
    assert "room for 4 more nodes with k=v3 (c3)" in lines
    assert "and 4 kinds of nodes of which more fit (--json has them)" in lines


def test_a_config_that_has_nothing_left_is_named() -> None:
    of = inventory([("one", "10.0.0.0/24:24", ""), ("two", "10.1.0.0/24:24", "")], {"n0": ""})
    assert "without a free block: one" in list(addresses.coming(of))
    assert "room for 1 more node like n0 (one, then two)" in list(addresses.coming(of))


def test_programs_are_told_all_there_is() -> None:
    told: dict[str, Any] = json.loads(
        json.dumps(addresses.document(inventory(STATION, {**SMALL, "n2": "size=x"})))
    )
    assert [(one["name"], one["selector"], one["given"], one["free"]) for one in told["configs"]] == [
        ("large", "", 2, 2), ("small", "size=small", 1, 3),
    ]  # fmt: skip
    assert told["configs"][1]["ranges"] == [
        {"cidr": "10.1.0.0/25", "mask": 27, "possible": 4, "free": ["10.1.0.32/27", "10.1.0.64/26"]}
    ]
    assert told["nodes"][0] == {
        "node": "n0", "config": "large", "blocks": ["10.0.0.0/24"], "pods": 5, "room": 253, "waits": None,
    }  # fmt: skip
    assert [one["fits"] for one in told["kinds"]] == [2, 5]
    assert told["runs_out_first"] == {"config": "large", "nodes": 3}
    assert told["savings"][0]["share"] == pytest.approx(1 - (2 * 256 + 32) / 768)


def test_the_picture_has_every_range_and_nothing_beside_it() -> None:
    of = [inventory(STATION, SMALL), inventory(STATION[1:], {"<script>": ""})]
    root = ET.fromstring(addresses.svg(of))
    text = "\n".join(root.itertext())
    assert "large: 10.0.0.0/22 by /24, 1 of 4 given, 3 free" in text
    assert "10.1.0.0: 1 given, 0 taken by others, 0 free" in text
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for group in root.iter(f"{SVG}g"):
        for rect in group.iter(f"{SVG}rect"):
            x, y, wide, high = (float(rect.attrib[key]) for key in ("x", "y", "width", "height"))
            assert 0 <= x <= x + wide <= width
            assert 0 <= y <= y + high <= height


def test_a_fleet_of_two_sizes_saves_two_thirds() -> None:
    """The number in docs/: 90 nodes for 30 pods, and 10 for 250."""
    of = blocks.inventory(load(ROOT / "scenarios" / "examples" / "fleet.yaml"), "a")
    rooms = [row.room for row in of.rows()]
    assert (len(rooms), min(rooms) >= 30, sorted(rooms)[90] >= 250) == (100, True, True)
    (line,) = addresses.saved(of)
    assert line == (
        "saved: 67.5 % of the IPv4 addresses that 100 nodes would have with a /24 each, "
        "8,320 instead of 25,600"
    )


def test_a_fleet_is_told_as_the_page_has_it() -> None:
    page = (ROOT / "docs" / "howto" / "addresses.md").read_text(encoding="utf-8")
    (wanted,) = re.findall(r"^\$ \./invokew addresses fleet\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    told = verbs.run("addresses", "fleet")
    assert told.returncode == 0
    assert told.stdout.endswith(f"\n{wanted}")
    coming = [f"cluster a: {line}" for line in wanted.splitlines() if not line.startswith("saved: ")]
    for planned in (["plan", "fleet"], ["up", "--dry", "fleet"]):
        assert [line for line in verbs.run(*planned).stdout.splitlines() if line in coming] == coming


def test_of_a_config_that_gives_nothing_nothing_is_free() -> None:
    of = inventory(STATION, SMALL)
    of.allocator.add(config("dual", "10.2.0.0/28:30 fd00::/124:126"))
    of.allocator.withdraw("dual", "must have IPv4 alone")
    text = shown(of)
    assert "dual: 10.2.0.0/28 by /30, 0 of 4 given, gives nothing of 4" in text
    assert [kind.configs for kind in of.kinds] == [("large",), ("small", "large")]
    assert "without a free block: dual" in text


def test_a_config_for_nobody_is_told_as_such() -> None:
    of = inventory([("all", "10.0.0.0/22:24", "")], SMALL)
    nobody = config("none", "10.1.0.0/24:27")._replace(selector=Selector(terms=((),)))
    of.allocator.add(nobody)
    assert re.search(r"^none +no node +10\.1\.0\.0/24 ", shown(of), re.MULTILINE)
    assert re.search(r"^all +any label +", shown(of), re.MULTILINE)
