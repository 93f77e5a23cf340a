"""What the plugin tells the kernel directly is what `ip` and `tc` would make of the same lines."""

from __future__ import annotations

import re
from typing import Any

import pytest
from concorde import links, shaping
from concorde.leases import Link
from concorde.node import htb, uplinks
from concorde.node.records import Entry, Fabric, Tree

from tests.paths import ROOT
from tests.system.plugin.conftest import Node
from tests.unit.plugin.examples import LINK, SUBNET

RUN = "import sys; sys.path[:0] = sys.argv[1:3]; from concorde import batches; batches.run(*sys.argv[3:])"
GIGA = 10**9
ENTRY = Entry("net", "A-1", "eth0", "", LINK.address, "cni-a", "veth1", GIGA, GIGA, 2 * GIGA, 0x10)
TREES = {
    "frames": Tree("one", 9 * GIGA, 180_000_000, (22,)),
    "of less than a frame's rate": Tree("one", 10_000_000, 200_000, (22,)),
    "of a fabric": Tree(
        "one", GIGA, GIGA // 50, (22,), fabric=Fabric(("192.168.56.0/24",), GIGA // 40, 7473)
    ),
    "more than 2^32 bytes a second": Tree("one", 100 * GIGA, GIGA, (22,)),
    "offloaded packets taken apart": Tree(
        "one", 9 * GIGA, 180_000_000, (22,), segment=htb.largest_frame(1500)
    ),
}


def direct(node: Node, tool: str, lines: str, netns: str = "") -> None:
    node.run("/usr/bin/python3", "-IS", "-c", RUN, ROOT, ROOT / "plugin", tool, lines, netns)


def by_tools(node: Node, tool: str, lines: str, netns: str = "") -> None:
    within = ["nsenter", f"--net={netns}"] if netns else []
    node.run(*within, tool, "-batch", "-", stdin=lines)


def pair(node: Node) -> None:
    for name in ("one", "two"):
        node.run("ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}-peer")


def shown(node: Node, name: str) -> list[str]:
    """All that tc shows of a link, without its name, and without bursts, which tc cuts to microseconds."""
    commands = ("-d class show", "-r -d qdisc show", "-d filter show")
    texts = [node.run("tc", *command.split(), "dev", name) for command in commands]
    lines = (line.replace(f" {name} ", " LINK ") for text in texts for line in text.splitlines())
    return sorted(re.sub(r"\b(c?burst) \S+", r"\1", line) for line in lines)


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
@pytest.mark.long(one_in=5)
def test_a_tree_is_the_same(tree: Tree, node: Node) -> None:
    pair(node)
    lines = htb.plant(tree, GIGA, fair=False)
    lines += "".join(htb.add_class(tree, minor, GIGA, ENTRY) for minor in htb.minors(ENTRY))
    lines += htb.change_rest(tree, 1_000_000) + htb.delete_queue(tree, 0x10)
    by_tools(node, "tc", lines)
    direct(node, "tc", lines.replace(" dev one ", " dev two "))
    assert shown(node, "two") == shown(node, "one")
    assert len(shown(node, "one")) > 10
    lines = htb.delete_class(tree, 0x4010) + htb.delete_root(tree)
    by_tools(node, "tc", lines)
    direct(node, "tc", lines.replace(" dev one ", " dev two "))
    assert shown(node, "two") == shown(node, "one")


def test_so_are_a_queue_whose_flows_take_turns_and_a_neighbour_table(node: Node) -> None:
    pair(node)
    fair = htb.queue_lines(Tree("one", GIGA, GIGA // 50, (22,)), 0x4010, ENTRY, fair=True)
    fair = fair.splitlines()[-1].replace("parent 4010:1", "root") + "\n"
    try:
        by_tools(node, "tc", fair)
    except AssertionError:
        pass  # this kernel has none
    else:
        direct(node, "tc", fair.replace(" dev one ", " dev two "))
        assert shown(node, "two") == shown(node, "one")
    direct(node, "ip", uplinks.let_wait("arp_cache", "two", uplinks.MOST_WAITING))
    (table,) = node.show("ip", "-j", "ntable", "show", "name", "arp_cache", "dev", "two")
    assert table["queue"] == uplinks.MOST_WAITING


KEYS = (
    "mtu",
    "address",
    "altnames",
    "ifalias",
    "gso_max_size",
    "gso_max_segs",
    "inet6_addr_gen_mode",
    "addr_info",
)


def state(link: dict[str, Any]) -> list[Any]:
    """What `ip -j -d addr` shows of a link that somebody set."""
    info = link.get("linkinfo", {})
    said = [link.get(key) for key in KEYS]
    return [
        *said,
        "UP" in link["flags"],
        info.get("info_kind"),
        info.get("info_data", {}).get("mcast_snooping"),
    ]


def test_a_pod_gets_the_same(node: Node) -> None:
    node.add_pod_namespace("A-1", "A-2")
    link = Link("eth0", 1450, LINK.address, SUBNET, "cni-a", "veth1")
    states = []
    for pod, run in (("A-1", by_tools), ("A-2", direct)):
        netns = f"/run/netns/{pod}"
        run(node, "ip", links.bridge_line(link) + links.pair_batch(link, netns, ipv6=True))
        run(node, "tc", shaping.batch("eth0", 10_000_000, 100_000), netns)
        run(node, "ip", links.pod_batch(link, ipv6=True) + links.default_route(link, "prepend"), netns)
        run(node, "ip", "link set dev eth0 gso_max_size 3200\n", netns)
        (inside,) = node.show("ip", "-j", "-d", "addr", "show", "dev", "eth0", pod=pod)
        ends = [node.show("ip", "-j", "-d", "addr", "show", "dev", name)[0] for name in ("cni-a", "veth1")]
        assert ends[1]["master"] == "cni-a"
        routes = node.in_pod(pod, "ip", "route")
        queues = [node.in_pod(pod, "tc", "-d", kind, "show", "dev", "eth0") for kind in ("qdisc", "class")]
        states.append([*map(state, [inside, *ends]), routes, *queues])
        for name in ("cni-a", "veth1"):
            node.run("ip", "link", "delete", name)
    assert states[0] == states[1]
