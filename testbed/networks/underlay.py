"""The network between the nodes: one switch, and a cable from its port to each node's uplink.

Rendered as ``ip -batch`` and ``tc -batch`` text for the place where the switch is. A rate belongs to the
cables and is enforced at the switch, outside the nodes, as a real link's is: towards every node, and from
each node whose traffic goes to several others. What a node sends to one other alone is as well shaped on that
one's cable; shaping it twice would only cost processor time that the flows are then short of.
"""

from __future__ import annotations

from collections.abc import Mapping

from testbed.scenario import Scenario
from testbed.scenario.addressing import Addressing

SWITCH = "switch"

# A link's bucket and queue, in time, so that they mean the same at every rate. The bucket must hold a whole
# GSO packet (64 KiB), or the kernel takes it apart at a cost that falsifies what is measured behind it. And
# it must last longer than a busy machine's timers are late, or a link would lose that much of its rate for
# good.
BUCKET_SECONDS = 0.005
SMALLEST_BUCKET = 128 * 1024  # bytes
QUEUE_SECONDS = 0.01


def port_name(index: int) -> str:
    """Return the switch's interface for the node of this index."""
    return f"port{index}"


def render_switch(addressing: Addressing, namespaces: Mapping[str, str]) -> str:
    """Return the ``ip -batch`` text that makes the switch and a cable to each node.

    ``namespaces`` holds the path of each node's network namespace.
    """
    scenario = addressing.scenario
    mtu, spreading = scenario.underlay.mtu, _spreading(scenario)
    # Everything here speaks IPv4 only; without link-local addresses (addrgenmode, before the link is up) no
    # neighbour discovery is flooded through the bridges while something is measured.
    lines = [
        f"link add {SWITCH} type bridge",
        f"link set {SWITCH} mtu {mtu} addrgenmode none",
        f"link set {SWITCH} up",
    ]
    for index, node in enumerate(scenario.nodes):
        port, far = port_name(index), addressing.uplink(node)
        lines += [
            f"link add {port} mtu {mtu} type veth peer name {far} mtu {mtu} netns {namespaces[node]}",
            f"link set {port} master {SWITCH} addrgenmode none",
            f"link set {port} up",
        ]
        if scenario.underlay.rate is not None and node in spreading:
            lines += [
                f"link add {port}-in mtu {mtu} type ifb",
                f"link set {port}-in addrgenmode none",
                f"link set {port}-in up",
            ]
    return "\n".join(lines) + "\n"


def render_rates(scenario: Scenario) -> str:
    """Return the ``tc -batch`` text that gives each cable its rate; empty without one.

    What comes from the node is shaped on an ifb that the port's ingress is redirected to, what goes to the
    node on the port itself.
    """
    rate = scenario.underlay.rate
    if rate is None:
        return ""
    bucket = max(SMALLEST_BUCKET, round(rate / 8 * BUCKET_SECONDS))
    limit = bucket + round(rate / 8 * QUEUE_SECONDS)
    lines, spreading = [], _spreading(scenario)
    for index, node in enumerate(scenario.nodes):
        port = port_name(index)
        shaper = f"root tbf rate {rate}bit burst {bucket} limit {limit}"
        lines.append(f"qdisc add dev {port} {shaper}")
        if node in spreading:
            lines += [
                f"qdisc add dev {port}-in {shaper}",
                f"qdisc add dev {port} handle ffff: ingress",
                f"filter add dev {port} parent ffff: protocol all u32 match u32 0 0 "
                f"action mirred egress redirect dev {port}-in",
            ]
    return "\n".join(lines) + "\n"


def _spreading(scenario: Scenario) -> set[str]:
    """Return the nodes whose traffic goes to several others."""
    towards: dict[str, set[str]] = {}
    for transfer in scenario.transfers:
        source, destination = scenario.node_of(transfer.source), scenario.node_of(transfer.destination)
        towards.setdefault(source, set()).add(destination)
    return {node for node, others in towards.items() if len(others - {node}) > 1}


def render_uplink(addressing: Addressing, node: str) -> str:
    """Return the ``ip -batch`` text for a node's own end of its cable."""
    end = addressing.uplink(node)
    return (
        "link set lo up\n"
        f"address add {addressing.nodes[node]} broadcast + dev {end}\n"
        f"link set {end} addrgenmode none\n"
        f"link set {end} up\n"
    )
