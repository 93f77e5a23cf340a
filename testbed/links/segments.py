"""Private networks of devices: a switch each, a cable to each gateway and device, and what is closed.

A gateway forwards nothing between a segment and anything else, another of its segments included, and lets
nobody in from there; who may pass is said in one place, the chain ``proxies`` of its table. A device has no
route but its segment, and servers at its ports (testbed.links.device_server).

Rendered as text for ``ip``, ``tc`` and ``nft``. A segment's rate is that of each cable, both ways, whatever
is sent: who fills it is nobody that the testbed knows before.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Interface

from edge.devices import kinds
from testbed.access.batch import Step, take
from testbed.access.components import Component
from testbed.access.place import Entered, Node
from testbed.links import device_server, ports
from testbed.links.ports import Port
from testbed.scenario import Scenario
from testbed.scenario.addressing import UPLINK

MTU = 1500  # of Ethernet, bytes
PYTHON = ("/usr/bin/python3", "-I", "-S")
DIRECTORY = "/run/device"
SOCKET = f"{DIRECTORY}/socket"
READY_SECONDS = 60.0
TABLE = "segments"
# On a gateway. Where rules of proxy pods come to: in ``proxies``, which accepts what they may pass on. Before
# those of the plugin, which let of that only pass what each may send, and count nothing.
CLOSED = """\
table inet {table} {{
  chain proxies {{
{passing}  }}
  chain closed {{
    jump proxies
    counter drop
  }}
  chain forward {{
    type filter hook forward priority filter - 10;
    iifname {{ {interfaces} }} goto closed
    oifname {{ {interfaces} }} goto closed
  }}
  chain input {{
    type filter hook input priority filter - 10;
    iifname {{ {interfaces} }} ct state established,related accept
    iifname {{ {interfaces} }} counter drop
    iifname != "lo" ip daddr {{ {addresses} }} counter drop
  }}
}}
"""

# What begins behind a bridge, and its answers.
PASSING = """\
    iifname "{bridge}" oifname "{interface}" accept
    iifname "{interface}" oifname "{bridge}" ct state established,related accept
"""


def switch_name(number: int) -> str:
    """Return the name of a segment's switch, in the order of the scenario."""
    return f"segment{number}"


def render_switches(scenario: Scenario, namespaces: Mapping[str, str]) -> str:
    """Return the ``ip -batch`` text that makes the switches, and a cable to each gateway and device.

    ``namespaces`` holds the path of the network namespace of each node and device; empty without segments.
    """
    lines: list[str] = []
    for number in range(len(scenario.segments)):
        lines += ports.switch(switch_name(number), MTU)
    for place, port in _ports(scenario):
        lines += port.links(namespaces[place])
    return "".join(f"{line}\n" for line in lines)


def render_rates(scenario: Scenario) -> str:
    """Return the ``tc -batch`` text that gives the cables their rates; empty without any."""
    return "".join(f"{line}\n" for _, port in _ports(scenario) for line in port.queues())


def _ports(scenario: Scenario) -> Iterator[tuple[str, Port]]:
    """Yield each gateway and device with the port that it is at."""
    for number, (name, segment) in enumerate(scenario.segments.items()):
        gateways = segment.gateways
        ends = [(node, segment.nodes[node], gateways[node].ip) for node in gateways]
        ends += [(one, UPLINK, to.address) for one, to in scenario.devices.items() if to.segment == name]
        for index, (place, interface, address) in enumerate(ends):
            at = f"seg{number}p{index}"
            both = segment.rate is not None
            yield place, Port(switch_name(number), at, MTU, interface, address, segment.rate, both)


def gateway_steps(scenario: Scenario, node: str) -> list[Step]:
    """Return what gives a node its interfaces in segments and closes it between them; nothing without any."""
    own = [one for one in scenario.segments.values() if node in one.nodes]
    if not own:
        return []
    addresses = [one.gateways[node] for one in own]
    ends = [ports.own_end(one.nodes[node], address) for one, address in zip(own, addresses, strict=True)]
    closed = CLOSED.format(
        table=TABLE,
        passing="".join(passing(bridge, one.nodes[node]) for one in own for bridge in one.bridges),
        interfaces=", ".join(f'"{one.nodes[node]}"' for one in own),
        addresses=", ".join(str(address.ip) for address in addresses),
    )
    # Closed before there is anything to pass.
    return [Step(["nft", "-f", "-"], closed), Step(["ip", "-batch", "-"], "".join(ends))]


def passing(bridge: str, interface: str) -> str:
    """Return the rules by which a gateway lets what is behind a bridge of its own begin with a segment."""
    return PASSING.format(bridge=bridge, interface=interface)


@dataclass(frozen=True)
class Device:
    """A device that runs."""

    node: Node  # where its commands run
    scenario: Scenario
    taken: Collection[tuple[str, int]] = ()  # TCP or UDP, and ports at which others are going to listen

    @property
    def address(self) -> str:
        """Its address in its segment."""
        return str(self.scenario.devices[self.node.name].address)

    @property
    def place(self) -> Entered:
        """Where commands run, as if it were a pod."""
        return Entered(self.node.name, self.node, (), self.address, interface=UPLINK)

    @property
    def component(self) -> Component:
        """What answers at its ports."""
        device = self.scenario.devices[self.node.name]
        wishes = {
            "name": self.node.name,
            "socket": SOCKET,
            "ports": [
                (protocol, number)
                for component in device.components.values()
                for protocol, _, number in component.ports
                if (kinds.transport(protocol), number) not in self.taken
            ],
        }
        argv = [*PYTHON, str(device_server.__file__), json.dumps(wishes)]
        return Component(f"server of device {self.node.name}", self.node, DIRECTORY, argv)

    def up(self) -> None:
        """Give it its address, start its servers, and wait until they listen. Raises RuntimeError."""
        device = self.scenario.devices[self.node.name]
        prefix = self.scenario.segments[device.segment].cidr.prefixlen
        own = "link set lo up\n" + ports.own_end(UPLINK, IPv4Interface((device.address, prefix)))
        take(self.node, [Step(["ip", "-batch", "-"], own)])
        self.component.start()
        self.component.wait_until_it_answers(SOCKET, READY_SECONDS)
