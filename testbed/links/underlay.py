"""The network between the nodes: a switch, and a cable from its port to each node's uplink.

With zones each zone has a switch for its nodes, and a trunk (testbed.links.trunks) to one in the middle.

Rendered as ``ip -batch`` and ``tc -batch`` text for the place where the switches are. A rate belongs to the
cables and is enforced at the switch, outside the nodes, as a real link's is: towards every node, and from
each node whose traffic goes to several others, or to one whose cable is faster. What a node sends to one
other alone is else as well shaped on that one's cable; shaping it twice would only cost processor time that
the flows are then short of.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address

from testbed.links import bucket, without_link_local
from testbed.links.trunks import Cable, Trunk, switch_name
from testbed.scenario import Scenario, links
from testbed.scenario.addressing import Addressing

SWITCH = "switch"

Trunks = Mapping[Trunk, Cable]


def port_name(index: int) -> str:
    """Return the switch's interface for the node of this index."""
    return f"port{index}"


def hardware_address(address: IPv4Address) -> str:
    """Return what a node of this address has on its cable: others know it without asking."""
    return ":".join(f"{octet:02x}" for octet in b"\x02\x00" + address.packed)


def render_switch(addressing: Addressing, namespaces: Mapping[str, str], trunks: Trunks) -> str:
    """Return the ``ip -batch`` text that makes the switches, a cable to each node, and the trunks.

    ``namespaces`` holds the path of each node's network namespace.
    """
    scenario = addressing.scenario
    mtu, spreading = scenario.underlay.mtu, _spreading(scenario)
    lines = []
    for switch in (SWITCH, *(trunk.switch for trunk in trunks)):
        lines += [
            f"link add {switch} type bridge",
            f"link set {switch} mtu {mtu}",
            *_set_up(switch),
        ]
    for trunk, means in trunks.items():
        lines += means.links(trunk)
        lines += [*_plug(trunk.near, trunk.switch), *_plug(trunk.far, SWITCH)]
    zones = list(scenario.zones)
    for index, (node, settings) in enumerate(scenario.nodes.items()):
        port, far, mac = port_name(index), addressing.uplink(node), hardware_address(addressing.address(node))
        switch = SWITCH if settings.zone is None else switch_name(zones.index(settings.zone))
        lines += [
            f"link add {port} mtu {mtu} type veth peer name {far} address {mac} mtu {mtu}"
            f" netns {namespaces[node]}",
            *_plug(port, switch),
        ]
        if node in spreading:
            lines += [f"link add {port}-in mtu {mtu} type ifb", *_set_up(f"{port}-in")]
    return "\n".join(lines) + "\n"


def _set_up(device: str) -> Iterator[str]:
    """Yield the lines that set a device up."""
    yield from without_link_local(device)
    yield f"link set {device} up"


def render_rates(scenario: Scenario, trunks: Trunks) -> str:
    """Return the ``tc -batch`` text that gives each cable and trunk its rate and delay; empty without any.

    What comes from the node is shaped on an ifb that the port's ingress is redirected to, what goes to the
    node on the port itself.
    """
    spreading = _spreading(scenario)
    lines = [line for trunk, means in trunks.items() for line in means.queues(trunk)]
    for index, node in enumerate(scenario.nodes):
        rate, port = links.rate_of(scenario, node), port_name(index)
        if rate is None:
            continue
        shaper = f"root {bucket(rate)}"
        lines.append(f"qdisc add dev {port} {shaper}")
        if node in spreading:
            lines += [
                f"qdisc add dev {port}-in {shaper}",
                f"qdisc add dev {port} handle ffff: ingress",
                f"filter add dev {port} parent ffff: protocol all u32 match u32 0 0 "
                f"action mirred egress redirect dev {port}-in",
            ]
    return "".join(f"{line}\n" for line in lines)


def _plug(end: str, switch: str) -> Iterator[str]:
    """Yield the lines that make an interface a port of a switch."""
    yield f"link set {end} master {switch}"
    yield from without_link_local(end)
    yield f"link set {end} up"


def _spreading(scenario: Scenario) -> set[str]:
    """Return the nodes whose links have a rate that only a queue of their own keeps."""
    towards: dict[str, set[str]] = {}
    for transfer in scenario.transfers:
        for source, destination in scenario.paths_of(transfer):
            towards.setdefault(source, set()).add(destination)

    def faster(one: str, other: str) -> bool:
        return (links.rate_of(scenario, one) or math.inf) > (links.rate_of(scenario, other) or math.inf)

    return {
        node
        for node, others in towards.items()
        if links.rate_of(scenario, node) is not None
        and (len(others - {node}) > 1 or any(faster(other, node) for other in others))
    }


def render_uplink(addressing: Addressing, node: str) -> str:
    """Return the ``ip -batch`` text for a node's own end of its cable."""
    end = addressing.uplink(node)
    lines = [
        "link set lo up",
        f"address add {addressing.nodes[node]} broadcast + dev {end}",
        *without_link_local(end),
        f"link set {end} up",
    ]
    return "\n".join(lines) + "\n"
