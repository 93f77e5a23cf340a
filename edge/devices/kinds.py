"""Device and Connection as they are written in a manifest, and what is wrong with one by itself.

The kinds, their fields and their defaults are those of J. Troják's thesis (listings 3.4 and 3.5). Optional
fields were added: ``nodeNames`` of a Device, ``mode``, ``replicas`` and ``guarantee`` of a Connection.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address
from typing import Any, NamedTuple

from edge.fields import Problem, mapping, sequence, text

GROUP, VERSION = "edge-operator.k8s.dvojak.cz", "v1"
API = f"{GROUP}/{VERSION}"
DEVICE, DEVICES = "Device", "devices"
CONNECTION, CONNECTIONS = "Connection", "connections"
PROTOCOLS = ("TCP", "UDP", "HTTP")
TRANSLATE, RELAY = "translate", "relay"
MODES = (TRANSLATE, RELAY)
PREFIX = "dop-"  # of the name of what a Connection has made for it
MOST_NAME = 63 - len(PREFIX)  # a Service is called by a label of DNS (RFC 1123)
MOST_REPLICAS = 16
MOST_RATE = 1_000_000_000_000  # bits per second; what the plugin takes, as ``bits_per_second``
_SUFFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
_RATE = re.compile(r"([0-9]{1,13})(\.[0-9]{1,9})?(k|M|G|T|Ki|Mi|Gi)?")
_ADDRESS = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){3}")
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_SUBDOMAIN = re.compile(rf"{_LABEL.pattern}(\.{_LABEL.pattern})*")


class BadObjectError(ValueError):
    """An object that cannot be used; ``problems`` are all of them."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems


class Handler(NamedTuple):
    """A port of a device; HTTP is TCP that says so."""

    name: str
    protocol: str
    port: int

    @property
    def transport(self) -> str:
        """TCP or UDP."""
        return transport(self.protocol)


def transport(protocol: str) -> str:
    """Return TCP or UDP, by which a protocol is spoken."""
    return "UDP" if protocol == "UDP" else "TCP"


class Component(NamedTuple):
    """A program of a device."""

    name: str
    up: bool
    handlers: tuple[Handler, ...]


class Device(NamedTuple):
    """What is in a private network, and by which nodes that is reached, the first one first."""

    name: str
    nodes: tuple[str, ...]
    up: bool
    address: IPv4Address
    components: tuple[Component, ...]

    def component(self, name: str) -> Component:
        """Return one of its components. Raises LookupError."""
        for one in self.components:
            if one.name == name:
                return one
        raise LookupError(name)


class Guarantee(NamedTuple):
    """What is promised of a connection, in bits per second as it was written; empty if nothing is."""

    to_device: str = ""
    from_device: str = ""


class Connection(NamedTuple):
    """A way from a cluster to some components of a device."""

    namespace: str
    name: str
    device: str
    network: str
    components: tuple[str, ...]
    mode: str = TRANSLATE
    replicas: int = 1
    guarantee: Guarantee = Guarantee()

    @property
    def proxy(self) -> str:
        """How the Deployment and the Service are called."""
        return f"{PREFIX}{self.name}"

    @property
    def definition(self) -> tuple[str, str]:
        """Namespace and name of the network's definition."""
        namespace, _, name = self.network.rpartition("/")
        return namespace or self.namespace, name


def parse_device(document: Mapping[str, Any]) -> Device:
    """Return what a Device says. Raises BadObjectError with all that is wrong with it by itself."""
    problems: list[Problem] = []
    spec = mapping(document.get("spec"), "spec", problems)
    components = tuple(
        _component(one, f"spec.components[{number}]", problems)
        for number, one in enumerate(sequence(spec.get("components"), "spec.components", problems))
    )
    nodes = [_subdomain(spec.get("nodeName"), "spec.nodeName", problems)]
    for number, one in enumerate(sequence(spec.get("nodeNames", []), "spec.nodeNames", problems)):
        nodes.append(_subdomain(one, f"spec.nodeNames[{number}]", problems))
    device = Device(
        _name(document),
        tuple(dict.fromkeys(nodes)),
        _flag(spec, "up", "spec", problems),
        _address(spec.get("ipAddress"), problems),
        components,
    )
    problems += [*_components_twice(device), *_ports_twice(device)]
    if problems:
        raise BadObjectError(problems)
    return device


def parse_connection(document: Mapping[str, Any]) -> Connection:
    """Return what a Connection asks for. Raises BadObjectError with all that is wrong with it by itself."""
    problems: list[Problem] = []
    spec = mapping(document.get("spec"), "spec", problems)
    path = "spec.componentNames"
    names = [
        text(one, f"{path}[{number}]", problems)
        for number, one in enumerate(sequence(spec.get("componentNames"), path, problems))
    ]
    if not names and isinstance(spec.get("componentNames"), list):
        problems.append(Problem(path, "must name a component at least"))
    problems += [
        Problem(f"{path}[{number}]", f"{name!r} is named before")
        for number, name in enumerate(names)
        if name in names[:number]
    ]
    connection = Connection(
        str(mapping(document.get("metadata", {}), "metadata", problems).get("namespace") or "default"),
        _name(document),
        _subdomain(spec.get("deviceName"), "spec.deviceName", problems),
        _network(spec.get("networkName"), problems),
        tuple(names),
        _mode(spec.get("mode", TRANSLATE), problems),
        _number(spec.get("replicas", 1), "spec.replicas", MOST_REPLICAS, problems),
        _guarantee(spec.get("guarantee", {}), problems),
    )
    if len(connection.name) > MOST_NAME or not _LABEL.fullmatch(connection.name):
        what = f"must be a DNS label of at most {MOST_NAME} characters: its Service is called {PREFIX}NAME"
        problems.append(Problem("metadata.name", what))
    if problems:
        raise BadObjectError(problems)
    return connection


def bits_per_second(rate: str) -> int:
    """Return a rate like 20M, rounded up. Raises ValueError for what is none from 1k to 1T."""
    match = _RATE.fullmatch(rate)
    if match is None:
        raise ValueError("must be a rate in bits per second, like 20M")
    whole, fraction, suffix = match.groups(default="")
    digits = len(fraction[1:])
    bits = -(-int(whole + fraction[1:]) * _SUFFIXES[suffix] // int(10**digits))
    if not 1000 <= bits <= MOST_RATE:
        raise ValueError("must be from 1k to 1T (bits per second)")
    return bits


def _name(document: Mapping[str, Any]) -> str:
    metadata = document.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, Mapping) else ""


def _component(written: object, path: str, problems: list[Problem]) -> Component:
    asked = mapping(written, path, problems)
    handlers = sequence(asked.get("handlers", []), f"{path}.handlers", problems)
    return Component(
        text(asked.get("name"), f"{path}.name", problems),
        _flag(asked, "up", path, problems),
        tuple(_handler(one, f"{path}.handlers[{number}]", problems) for number, one in enumerate(handlers)),
    )


def _handler(written: object, path: str, problems: list[Problem]) -> Handler:
    asked = mapping(written, path, problems)
    name, protocol = asked.get("name"), asked.get("protocol", "TCP")
    if protocol not in PROTOCOLS:
        problems.append(Problem(f"{path}.protocol", f"must be one of {', '.join(PROTOCOLS)}"))
    for number, one in enumerate(sequence(asked.get("endPoints") or [], f"{path}.endPoints", problems)):
        text(one, f"{path}.endPoints[{number}]", problems)
    return Handler(
        "" if name is None else text(name, f"{path}.name", problems),
        str(protocol),
        _number(asked.get("port"), f"{path}.port", 65535, problems),
    )


def _components_twice(device: Device) -> list[Problem]:
    names = [one.name for one in device.components]
    return [
        Problem(f"spec.components[{number}].name", f"another component is called {name!r}, too")
        for number, name in enumerate(names)
        if name in names[:number]
    ]


def _ports_twice(device: Device) -> list[Problem]:
    """Return which handlers have a port that another one of the same transport has, too."""
    found, seen = [], dict[tuple[str, int], str]()
    for at, component in enumerate(device.components):
        for number, handler in enumerate(component.handlers):
            path, key = f"spec.components[{at}].handlers[{number}].port", (handler.transport, handler.port)
            if key in seen and handler.port:
                found.append(Problem(path, f"{handler.transport} port {handler.port} is {seen[key]}, too"))
            seen.setdefault(key, path)
    return found


def _address(written: object, problems: list[Problem]) -> IPv4Address:
    try:
        if isinstance(written, str) and _ADDRESS.fullmatch(written):
            address = IPv4Address(written)
            if not (address.is_multicast or address.is_loopback or address.is_unspecified):
                return address
    except ValueError:
        pass
    problems.append(Problem("spec.ipAddress", "must be the IPv4 address of a machine, like 172.17.16.120"))
    return IPv4Address(0)


def _flag(asked: Mapping[str, Any], field: str, path: str, problems: list[Problem]) -> bool:
    flag = asked.get(field, True)
    if not isinstance(flag, bool):
        problems.append(Problem(f"{path}.{field}", "must be true or false"))
    return bool(flag)


def _number(written: object, path: str, most: int, problems: list[Problem]) -> int:
    if isinstance(written, int) and not isinstance(written, bool) and 1 <= written <= most:
        return written
    problems.append(Problem(path, f"must be an integer from 1 to {most}"))
    return 0


def _subdomain(written: object, path: str, problems: list[Problem]) -> str:
    if isinstance(written, str) and len(written) <= 253 and _SUBDOMAIN.fullmatch(written):
        return written
    problems.append(Problem(path, "must be a name as objects have, like kedge1"))
    return ""


def _network(written: object, problems: list[Problem]) -> str:
    parts = written.split("/") if isinstance(written, str) else []
    if 1 <= len(parts) <= 2 and all(_SUBDOMAIN.fullmatch(part) for part in parts):
        return str(written)
    what = "must be the name of a NetworkAttachmentDefinition, or NAMESPACE/NAME"
    problems.append(Problem("spec.networkName", what))
    return ""


def _mode(written: object, problems: list[Problem]) -> str:
    if written not in MODES:
        problems.append(Problem("spec.mode", f"must be {TRANSLATE} or {RELAY}"))
    return str(written)


def _guarantee(written: object, problems: list[Problem]) -> Guarantee:
    asked = mapping(written, "spec.guarantee", problems)
    rates = []
    for field in ("toDevice", "fromDevice"):
        rate = asked.get(field)
        try:
            if rate is not None:
                bits_per_second(rate if isinstance(rate, str) else "")
        except ValueError as error:
            problems.append(Problem(f"spec.guarantee.{field}", str(error)))
        rates.append("" if rate is None else str(rate))
    return Guarantee(*rates)
