"""Lets nodes know each other's hardware addresses ahead, where the kernel has not room to learn them.

A machine's kernel keeps what all network namespaces learn by ARP in one table, of 1,024 entries if nobody has
changed that (``gc_thresh3``, net/core/neighbour.c). 33 nodes of which each talks to all others fill it, as
those of a BGP mesh do; then packets are lost, and not in this testbed alone. Permanent entries do not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from testbed.access.place import Node, in_parallel
from testbed.scenario import Scenario
from testbed.scenario.addressing import Addressing

LIMIT = Path("/proc/sys/net/ipv4/neigh/default/gc_thresh3")
SHARE = 0.5  # of the table that one testbed may fill: it is not the only one
# A full mesh of 200 nodes. Larger ones do not talk all to all, and so many entries would take their time.
MOST = 40_000


def introduce(addressing: Addressing, nodes: Mapping[str, Node]) -> None:
    """Write entries of each other into nodes of the same cluster, if they could be too many to be learned."""
    if not fills(addressing.scenario, _limit()):
        return
    shown = in_parallel(
        lambda name: nodes[name].run(["ip", "-j", "link", "show", "dev", addressing.uplink(name)]).json(),
        nodes,
    )
    macs = {name: link["address"] for name, (link,) in zip(nodes, shown, strict=True)}
    in_parallel(
        lambda name: nodes[name].run(["ip", "-batch", "-"], stdin=render(addressing, name, macs)), nodes
    )


def fills(scenario: Scenario, limit: int) -> bool:
    """Tell whether the pairs of nodes that share a cluster are too many for the kernel's table."""
    return limit * SHARE < sum(len(others) for others in _mates(scenario).values()) <= MOST


def render(addressing: Addressing, node: str, macs: Mapping[str, str]) -> str:
    """Return the ``ip -batch`` text that tells a node the hardware addresses of those of its clusters."""
    uplink = addressing.uplink(node)
    return "".join(
        f"neighbour replace {addressing.address(other)} lladdr {macs[other]} dev {uplink} nud permanent\n"
        for other in sorted(_mates(addressing.scenario)[node])
    )


def _mates(scenario: Scenario) -> dict[str, set[str]]:
    """Return the nodes with which each shares a cluster."""
    found: dict[str, set[str]] = {name: set() for name in scenario.nodes}
    for cluster in scenario.clusters.values():
        for name in cluster.nodes:
            found[name] |= {other for other in cluster.nodes if other != name}
    return found


def _limit() -> int:
    return int(LIMIT.read_text(encoding="ascii")) if LIMIT.exists() else 1024
