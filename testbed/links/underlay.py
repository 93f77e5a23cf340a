"""The network between the nodes: a switch, and a cable from its port to each node's uplink.

With zones each zone has a switch for its nodes, and a trunk (testbed.links.trunks) to one in the middle.

Rendered as ``ip -batch`` and ``tc -batch`` text for the place where the switches are. A cable's rate
(testbed.links.ports) is enforced towards every node, and from each node whose traffic goes to several
others, or to one whose cable is faster. What a node sends to one other alone is else as well shaped on that
one's cable; shaping it twice would only cost processor time that the flows are then short of.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from testbed.links import ports
from testbed.links.ports import Port
from testbed.links.trunks import Cable, Trunk, far_end, near_end, switch_name
from testbed.scenario import Scenario, links
from testbed.scenario.addressing import Addressing

SWITCH = "switch"

Trunks = Mapping[Trunk, Cable]


def port_name(index: int) -> str:
    """Return the switch's interface for the node of this index."""
    return f"port{index}"


def render_switch(addressing: Addressing, namespaces: Mapping[str, str], trunks: Trunks) -> str:
    """Return the ``ip -batch`` text that makes the switches, a cable to each node, and the trunks.

    ``namespaces`` holds the path of each node's network namespace.
    """
    mtu = addressing.scenario.underlay.mtu
    lines: list[str] = []
    for switch in (SWITCH, *(trunk.switch for trunk in trunks)):
        lines += ports.switch(switch, mtu)
    for trunk, means in trunks.items():
        lines += means.links(trunk)
        lines += [*ports.plug(trunk.near, trunk.switch), *ports.plug(trunk.far, SWITCH)]
    for node, port in _ports(addressing):
        lines += port.links(namespaces[node])
    return "\n".join(lines) + "\n"


def render_rates(addressing: Addressing, trunks: Trunks) -> str:
    """Return the ``tc -batch`` text that gives each cable and trunk its rate and delay; empty without any."""
    lines = [line for trunk, means in trunks.items() for line in means.queues(trunk)]
    lines += [line for _, port in _ports(addressing) for line in port.queues()]
    return "".join(f"{line}\n" for line in lines)


def counters(addressing: Addressing) -> Iterator[tuple[links.Link, str, str]]:
    """Yield where what each direction of a link lets pass is counted: its place, and a device there.

    What leaves a node is counted by its own end, and by its port where that has a queue for it.
    """
    for node, port in _ports(addressing):
        yield links.Link(node, trunk=False, out=True), node, addressing.uplink(node)
        if port.both and port.rate is not None:
            yield links.Link(node, trunk=False, out=True), SWITCH, f"{port.name}-in"
        yield links.Link(node, trunk=False, out=False), SWITCH, port.name
    for number, zone in enumerate(addressing.scenario.zones):
        yield links.Link(zone, trunk=True, out=True), SWITCH, near_end(number)
        yield links.Link(zone, trunk=True, out=False), SWITCH, far_end(number)


def _ports(addressing: Addressing) -> Iterator[tuple[str, Port]]:
    """Yield each node, and the port that it is at."""
    scenario = addressing.scenario
    zones, spreading = list(scenario.zones), _spreading(scenario)
    for index, (node, settings) in enumerate(scenario.nodes.items()):
        yield (
            node,
            Port(
                SWITCH if settings.zone is None else switch_name(zones.index(settings.zone)),
                port_name(index),
                scenario.underlay.mtu,
                addressing.uplink(node),
                addressing.address(node),
                links.rate_of(scenario, node),
                both=node in spreading,
            ),
        )


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
    return "link set lo up\n" + ports.own_end(addressing.uplink(node), addressing.nodes[node])
