"""What is wrong with a Device or a Connection beside the other objects of its cluster.

Pure. The checks are those of the thesis (its listings 3.7 and 3.8), and ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Network
from typing import Any, NamedTuple

from edge.devices.kinds import Connection, Device, bits_per_second
from edge.fields import Problem

TAKES_NOTHING = ("NoSchedule", "NoExecute")
# What a proxy pod bears, for a while: these come and go with a node's health.
PASSING = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
KEEPER = "concorde"  # the plugin that keeps promises
MOST_HANDLERS = 999  # of a connection; the plugin takes one more, by which a pod is asked


class Node(NamedTuple):
    """What is asked of a node: its labels, the keys of taints that keep pods away, and its addresses."""

    labels: Mapping[str, str] = {}
    taints: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()


def node_of(document: Mapping[str, Any]) -> Node:
    """Return what is asked of a node."""
    taints = (document.get("spec") or {}).get("taints") or ()
    keys = tuple(str(one.get("key")) for one in taints if one.get("effect") in TAKES_NOTHING)
    return Node(
        dict(document["metadata"].get("labels") or {}),
        tuple(key for key in keys if key not in PASSING),
        tuple(str(one.get("address")) for one in (document.get("status") or {}).get("addresses") or ()),
    )


def device_problems(
    device: Device, nodes: Mapping[str, Node], labels: Mapping[str, str], others: Iterable[Device]
) -> Iterator[Problem]:
    """Yield what is wrong with a device: its gateways, which must have these labels, and its address."""
    for number, name in enumerate(device.nodes):
        path = f"spec.nodeNames[{number - 1}]" if number else "spec.nodeName"
        yield from (Problem(path, what) for what in _unfit(name, nodes, labels))
        if name in nodes and str(device.address) in nodes[name].addresses:
            yield Problem("spec.ipAddress", f"{device.address} is node {name}'s own")
    for other in others:
        if (
            other.name != device.name
            and other.address == device.address
            and set(other.nodes) & set(device.nodes)
        ):
            yield Problem("spec.ipAddress", f"device {other.name} by the same node has {other.address}, too")


def _unfit(name: str, nodes: Mapping[str, Node], labels: Mapping[str, str]) -> Iterator[str]:
    node = nodes.get(name)
    if node is None:
        yield f"there is no node {name}"
        return
    for key, value in labels.items():
        if node.labels.get(key) != value:
            yield f"node {name} has no label {key}={value}"
    if node.taints:
        yield f"node {name} takes no pods: it has the taint {node.taints[0]}"


def connection_problems(
    connection: Connection, device: Device | None, definition: Mapping[str, Any] | None
) -> Iterator[Problem]:
    """Yield what is wrong with a connection: its device, that one's components, its network's definition."""
    if device is None:
        yield Problem("spec.deviceName", f"there is no device {connection.device} that can be used")
    else:
        yield from _device_problems(connection, device)
    namespace, name = connection.definition
    if definition is None:
        yield Problem("spec.networkName", f"there is no NetworkAttachmentDefinition {namespace}/{name}")
    else:
        found = definition_problems(definition, device.address if device else None)
        yield from (Problem("spec.networkName", f"{namespace}/{name}: {what}") for what in found)
        if promised := connection.guarantee.to_device:
            path = "spec.guarantee.toDevice"
            found = unkept(definition, bits_per_second(promised))
            yield from (Problem(path, f"{promised} {what} {namespace}/{name}") for what in found)


def _device_problems(connection: Connection, device: Device) -> Iterator[Problem]:
    count = sum(len(one.handlers) for one in device.components if one.name in connection.components)
    if count > MOST_HANDLERS:
        yield Problem(
            "spec.componentNames", f"have {count} handlers: one connection has {MOST_HANDLERS} at most"
        )
    if not device.up:
        yield Problem("spec.deviceName", f"device {device.name} is down")
    if connection.replicas > len(device.nodes):
        count = len(device.nodes)
        what = f"must be at most {count}: so many gateways device {device.name} has"
        yield Problem("spec.replicas", what)
    for number, name in enumerate(connection.components):
        path = f"spec.componentNames[{number}]"
        try:
            component = device.component(name)
        except LookupError:
            yield Problem(path, f"device {device.name} has no component {name!r}")
            continue
        if not component.up:
            yield Problem(path, f"component {name!r} of device {device.name} is down")
        if not component.handlers:
            yield Problem(path, f"component {name!r} of device {device.name} has no handlers")


def unkept(definition: Mapping[str, Any], rate: int) -> Iterator[str]:
    """Yield why a rate (bits per second) towards a device is kept by nobody in a network, as far as is known.

    What is free of a link the plugin says when a pod is attached.
    """
    plugins = _plugins(definition)
    keepers = [one for one in plugins if one.get("type") == KEEPER]
    if plugins and not keepers:
        yield "is promised by no plugin of"
    for one in keepers:
        with suppress(ValueError):
            if rate > bits_per_second(str(one.get("capacity"))):
                yield f"is more than {one['capacity']}, the capacity of the link in"


def _plugins(definition: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the plugins of a definition as far as they can be understood."""
    try:
        config = json.loads((definition.get("spec") or {}).get("config") or "")
    except (ValueError, RecursionError, TypeError):
        return []
    listed = _listed(config)
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _listed(config: object) -> object:
    """Return what a configuration has for its plugins: one alone is a list of itself."""
    return config.get("plugins", [config]) if isinstance(config, dict) else None


def definition_problems(definition: Mapping[str, Any], address: IPv4Address | None) -> Iterator[str]:
    """Yield what is wrong with a network's definition for a device with this address.

    Without ``spec.config`` the configuration is a file on the node (NPWG's de-facto standard): nobody knows
    it here.
    """
    text = (definition.get("spec") or {}).get("config")
    if not text:
        return
    try:
        config = json.loads(text)
    except (ValueError, RecursionError, TypeError):
        yield "its config is not valid JSON"
        return
    plugins = _listed(config)
    if not isinstance(plugins, list) or not plugins or not all(isinstance(one, dict) for one in plugins):
        yield "its config is no CNI configuration"
    elif not all(isinstance(one.get("type"), str) for one in plugins):
        yield "a plugin in its config has no type"
    elif address is not None:
        yield from _unreachable(plugins[0], address)


def _unreachable(config: Mapping[str, Any], address: IPv4Address) -> Iterator[str]:
    """Yield whether an address is a gateway's, or outside the network and its routes, as far as is known."""
    ipam = config.get("ipam")
    if not isinstance(ipam, dict):
        return
    known = list(_objects(ipam.get("ranges"))) + list(_objects(ipam.get("addresses"))) + [ipam]
    texts = [one.get("subnet") or one.get("address") for one in known]
    subnets = [net for net in map(_network, texts) if net is not None]
    gateways = [one["gateway"] for one in known if isinstance(one.get("gateway"), str)]
    if not gateways and config.get("isGateway"):
        gateways = [str(subnet[1]) for subnet in subnets if subnet.num_addresses > 2]
    if str(address) in gateways:
        yield f"{address} is its gateway's"
    routes = [_network(one.get("dst")) for one in _objects(ipam.get("routes"))]
    reached = [*subnets, *(net for net in routes if net is not None)]
    if subnets and not any(address in net for net in reached):
        yield f"{address} is neither in {', '.join(map(str, subnets))} nor behind a route of it"


def _objects(written: object, deep: int = 2) -> Iterator[Mapping[str, Any]]:
    """Yield the objects in a list of them, or in lists of lists."""
    if isinstance(written, Mapping):
        yield written
    elif isinstance(written, list) and deep:
        for one in written:
            yield from _objects(one, deep - 1)


def _network(written: object) -> IPv4Network | None:
    try:
        return IPv4Network(written, strict=False) if isinstance(written, str) else None
    except ValueError:
        return None
