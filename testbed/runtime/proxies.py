"""Proxy pods of connections: what leads them into a segment, and where there is no Kubernetes what relays.

A proxy pod gets its second interface from ``concorde-networks``, which finds its segment's definition on the
node: the plugin ``concorde``, with a bridge of its own. The node routes from that bridge into the segment,
where the chain ``proxies`` lets these packets pass and nobody else's, and gives them its own address: devices
know no other network. So a promise on the segment's link is kept as on the node's own, in a tree there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from testbed.access.batch import Step
from testbed.access.components import Component
from testbed.access.place import InNamespace
from testbed.links import segments
from testbed.runtime.cni import ANNOTATIONS, Attachment, Json, NetworkList
from testbed.scenario import connections
from testbed.scenario.addressing import Addressing

PACKAGE = PROGRAM = "socat"
TYPE = "concorde-networks"
NAMESPACE = "default"
STATE = "/run/concorde-networks"
DIRECTORY = "/run/relays"
READY_SECONDS = 30.0
# In front of source NAT only what has come from a proxy pod's bridge is given the node's address.
OPENED = """\
table inet {table} {{
  chain proxies {{
{passing}  }}
  chain postrouting {{
    type nat hook postrouting priority srcnat;
    iifname "{bridge}" oifname "{interface}" masquerade
  }}
}}
"""
# Says something once so many sockets listen, from a port on.
LISTENING = '[ "$(ss -Hlntu "sport >= :$1" | wc -l)" -lt "$2" ] || echo "$2"'


def preparation(addressing: Addressing, node: str, promised: Callable[[str, str], Json]) -> list[Step]:
    """Return what lets a node have proxy pods; nothing where it has none.

    ``promised`` says how promises on the link of a segment are kept at a gateway, as its plugin is told.
    """
    scenario = addressing.scenario
    own = {scenario.connections[addressing.proxies[pod]].device for pod in _proxies(addressing, node)}
    names = [name for name in scenario.segments if any(scenario.devices[one].segment == name for one in own)]
    steps = [Step(["mkdir", "-p", f"{STATE}/definitions/{NAMESPACE}"])] if names else []
    for name in names:
        plugin = {
            "name": f"segment-{name}",
            **promised(name, node),
            **_bridged(addressing, name),
        }
        text = json.dumps({"spec": {"config": json.dumps({"cniVersion": "1.0.0", **plugin})}})
        bridge, interface = _bridge(addressing, name), scenario.segments[name].nodes[node]
        opened = OPENED.format(
            table=segments.TABLE,
            passing=segments.passing(bridge, interface),
            bridge=bridge,
            interface=interface,
        )
        steps.append(Step(["tee", f"{STATE}/definitions/{NAMESPACE}/{name}.json"], text))
        steps.append(Step(["nft", "-f", "-"], opened))
    return steps


def _proxies(addressing: Addressing, node: str) -> list[str]:
    return [pod for pod in addressing.pods_on(node) if pod in addressing.proxies]


def _bridge(addressing: Addressing, segment: str) -> str:
    return f"proxies{list(addressing.scenario.segments).index(segment)}"


def _bridged(addressing: Addressing, segment: str) -> dict[str, Any]:
    """Return the interface that a proxy pod gets, as its plugin is told."""
    subnet = connections.ranges(addressing.scenario)[segment]
    return {
        "type": "concorde",
        "bridge": _bridge(addressing, segment),
        "subnet": str(subnet),
        "mtu": segments.MTU,
        "capabilities": {ANNOTATIONS: True},
    }


def network_list(
    plain: NetworkList, addressing: Addressing, cluster: str, pods: Collection[str]
) -> NetworkList:
    """Return a cluster's list for these pods; if proxies are among them, they get net1 by it, behind eth0."""
    scenario, proxies = addressing.scenario, addressing.proxies
    of = {proxies[pod] for pod in pods if pod in proxies and addressing.pods[pod].cluster == cluster}
    if not of:
        return plain
    entered = {scenario.devices[scenario.connections[name].device].segment for name in of}
    ranges = [*addressing.pod_networks(cluster), addressing.service_range(cluster)]
    further: Json = {
        "type": TYPE,
        "clusterRanges": list(map(str, ranges)),
        "segments": [str(one.cidr) for name, one in scenario.segments.items() if name in entered],
        "capabilities": {ANNOTATIONS: True},
    }
    return replace(plain, plugins=[*plain.plugins, further])


def attachment(plain: Attachment, addressing: Addressing, pod: str) -> Attachment:
    """Return the attachment of a proxy pod, with what its connection says besides."""
    more = connections.annotations_of(addressing.scenario, addressing.proxies[pod])
    told = {**plain.capabilities.get(ANNOTATIONS, {}), **more}
    return replace(plain, capabilities={**plain.capabilities, ANNOTATIONS: told})


def start_relays(addressing: Addressing, place: InNamespace, program: Callable[[], Path]) -> list[Component]:
    """Start what relays in a proxy pod that runs, and wait until it listens; often nothing.

    ``program`` says where socat is. Raises LookupError without it, ComponentError or CommandError.
    """
    connection = addressing.proxies[place.name]
    started = []
    for port, arguments in connections.socats(addressing.scenario, connection, place.address):
        handler = f"{port.handler.transport} {port.handler.port}"
        directory = f"{DIRECTORY}/{place.name}/{port.taken}"
        relay = Component(
            f"relay of {handler} in {place.name}", place, directory, [str(program()), *arguments]
        )
        relay.start()
        started.append(relay)
    if started:
        first = min(port.taken for port in connections.ports(addressing.scenario, connection))
        asked = ["sh", "-c", LISTENING, "sh", str(first), str(len(started))]
        started[-1].wait_until_it_says(asked, READY_SECONDS)
    return started
