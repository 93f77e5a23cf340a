"""The ways to a device, and the scenarios in which they are measured; pure.

One device stands in a segment behind a worker, its gateway. Who asks is the gateway itself, a pod there, or a
pod of another worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from testbed.scenario import Scenario

CLUSTER, MASTER, GATEWAY, OTHER = "a", "master", "gateway", "other"
NEAR, FAR = "near", "far"  # the pods that ask
SEGMENT, DEVICE = "plant", "machine"
ADDRESS = "172.30.16.120"
TRANSLATE, RELAY, HOST, DIRECT = "translate", "relay", "host", "direct"
ASKED, STREAM, TOLD = "asked", "stream", "told"  # components: of exchanges, of a flow, of datagrams
PORTS = {ASKED: 7100, STREAM: 7101, TOLD: 7102}
REQUESTS_PER_S, REQUEST_BYTES, ANSWER_BYTES = 200.0, 64, 64
HANDLERS = (1, 10, 100)  # of a connection at rest
FIRST_HANDLER = 8000
CLIENTS = 1000  # by UDP, at once

Leads = Literal["gateway", "direct", "host", "translate", "relay"]


class Way(NamedTuple):
    """A way to the device."""

    name: str
    about: str  # as people are told it
    source: str  # the node or pod that asks
    leads: Leads  # what leads from there to the device


WAYS = (
    Way("gateway", "the gateway itself asks: nothing is between", GATEWAY, "gateway"),
    Way(
        DIRECT,
        "a pod of the gateway, which routes it, and to which the device has a route",
        NEAR,
        "direct",
    ),
    Way(HOST, "a socat in the gateway's own network, as a pod on the host network", NEAR, "host"),
    Way(TRANSLATE, "a connection by `translate`", NEAR, "translate"),
    Way(RELAY, "a connection by `relay`", NEAR, "relay"),
    Way("translate-far", "the same by `translate`, from another node", FAR, "translate"),
    Way("relay-far", "the same by `relay`, from another node", FAR, "relay"),
)
NAMES = tuple(one.name for one in WAYS)
BY_NAME: Mapping[str, Way] = MappingProxyType({one.name: one for one in WAYS})


def _scenario(components: Mapping[str, Any], connections: Mapping[str, Any], **traffic: Any) -> Scenario:
    return Scenario.model_validate(
        {
            "name": "devices",
            "nodes": {MASTER: None, GATEWAY: None, OTHER: None},
            "clusters": {
                CLUSTER: {"master": MASTER, "workers": [GATEWAY, OTHER], "pod_cidr": "172.16.0.0/16"}
            },
            "enforcement": "none",
            "pods": {NEAR: {"cluster": CLUSTER, "node": GATEWAY}, FAR: {"cluster": CLUSTER, "node": OTHER}},
            "segments": {SEGMENT: {"cidr": "172.30.16.0/24", "nodes": {GATEWAY: "eth1"}}},
            "devices": {DEVICE: {"segment": SEGMENT, "address": ADDRESS, "components": dict(components)}},
            "connections": {
                name: {"cluster": CLUSTER, "device": DEVICE, **one} for name, one in connections.items()
            },
            **traffic,
        }
    )


def scenario() -> Scenario:
    """Return the scenario of all ways, whose device leaves its ports to what measures."""
    components = {name: {"TCP": [port], "UDP": [port]} for name, port in PORTS.items()}
    to = {"from": NEAR, "to": TRANSLATE}
    asked = {"rate": REQUESTS_PER_S, "size": REQUEST_BYTES, "answer": ANSWER_BYTES, "connections": "new"}
    return _scenario(
        components,
        {mode: {"components": [*PORTS], "mode": mode} for mode in (TRANSLATE, RELAY)},
        requests=[
            {"name": protocol, **to, "component": ASKED, "protocol": protocol, **asked, "duration": 1}
            for protocol in ("tcp", "udp")
        ],
        flows=[
            {"name": STREAM, **to, "component": STREAM, "duration": 1},
            {"name": TOLD, **to, "component": TOLD, "protocol": "udp", "rate": "1M", "duration": 1},
        ],
    )


def connection(mode: str, handlers: int) -> str:
    """Return the name of a connection of so many handlers."""
    return f"{mode}-{handlers}"


def many_handlers() -> Scenario:
    """Return the scenario of connections of 1, 10 and 100 handlers in both modes."""
    components, first = {}, FIRST_HANDLER
    for count in HANDLERS:
        components[f"of-{count}"] = {"TCP": list(range(first, first + count))}
        first += count
    connections = {
        connection(mode, count): {"components": [f"of-{count}"], "mode": mode}
        for mode in (TRANSLATE, RELAY)
        for count in HANDLERS
    }
    return _scenario(components, connections, flows=[{"from": FAR, "to": NEAR, "duration": 1}])


def many_clients() -> Scenario:
    """Return the scenario of connections whose device sends datagrams back."""
    connections = {mode: {"components": [TOLD], "mode": mode} for mode in (TRANSLATE, RELAY)}
    components = {TOLD: {"UDP": [PORTS[TOLD]]}}
    return _scenario(components, connections, flows=[{"from": FAR, "to": NEAR, "duration": 1}])
