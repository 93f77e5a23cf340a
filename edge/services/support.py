"""What of a Service is done, and what is not, whatever the node; pure.

What is not built is left alone and said: of such a service nothing is done, or nothing but its cluster
address, never a part of what it asks for there.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network, ip_network
from typing import Any, NamedTuple, Optional

from edge.http import Json
from edge.services.rules import TCP, UDP
from edge.services.selection import CLUSTER, INTERNAL_POLICY, LOCAL, policies_of

PROTOCOLS = {"TCP": TCP, "UDP": UDP}
# What reading an object that is not as an API writes it raises.
UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
# Whose services are for another proxy, as kube-proxy reads it: nothing is said of them.
_OTHERS = "service.kubernetes.io/service-proxy-name"
_ALONE = "the service is left alone"
_ONLY = "only the cluster address is served"


class Support(NamedTuple):
    """The address at which a service is served, empty if it is left alone; and what is not done for it."""

    address: str
    left: tuple[str, ...] = ()


def supported(service: Mapping[str, Any], services: Optional[IPv4Network]) -> Support:  # noqa: UP045 (Python 3.9)
    """Return what is done for a service where services have such addresses, or any if that is not known."""
    try:
        spec = service.get("spec") or {}
        if _OTHERS in (service["metadata"].get("labels") or {}):
            return Support("")
        address = address_of(spec)
        why = _unfit(spec, address, services)
        if why:
            return Support("", (f"{why}: {_ALONE}",))
        return Support(address, (*_beyond(spec), *_unread(service)))
    except UNREADABLE as error:
        return Support("", (f"cannot be read ({error!r}): {_ALONE}",))


def service_range(text: str) -> IPv4Network:
    """Return the IPv4 range that an option is, or of two families has. Raises ArgumentTypeError."""
    try:
        return next(one for one in map(ip_network, text.split(",")) if isinstance(one, IPv4Network))
    except StopIteration:
        raise argparse.ArgumentTypeError(f"{text[:60]!r} is no range of IPv4") from None
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def require_port(number: int) -> int:
    """Return the number of a port. Raises ValueError if it is none."""
    if not 1 <= number <= 65535:
        raise ValueError(f"port {number} is not from 1 to 65535")
    return number


def a_string(value: object, what: str) -> Optional[str]:  # noqa: UP045
    """Return a value that must be a string or none. Raises TypeError with its name."""
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{what}: must be a string")
    return value


def address_of(spec: Json) -> str:
    """Return the IPv4 address of a service, if it has one."""
    for text in (spec.get("clusterIP"), *(spec.get("clusterIPs") or ())):
        if text and text != "None" and ":" not in text:
            return str(IPv4Address(text))
    return ""


def _unfit(spec: Json, address: str, services: Optional[IPv4Network]) -> str:  # noqa: UP045
    """Return why nothing can be done for a service; empty if there is no such reason."""
    if spec.get("type") == "ExternalName":
        return "spec.type: ExternalName is not supported"
    if spec.get("clusterIP") == "None":
        return "spec.clusterIP: None (headless) is not supported"
    if (spec.get("sessionAffinity") or "None") != "None":
        return f"spec.sessionAffinity: {spec['sessionAffinity']} is not supported, use None"
    if not address:
        return "spec.clusterIP: not an IPv4 address; IPv6 is not supported"
    if services is not None and IPv4Address(address) not in services:
        return f"spec.clusterIP: {address} is not in {services}, the range of services"
    return ""


def _unread(service: Mapping[str, Any]) -> Iterator[str]:
    policy = policies_of(service).internal
    if policy not in (CLUSTER.internal, LOCAL):
        yield f"{INTERNAL_POLICY}: must be Cluster or Local, not {policy!r}: read as Cluster"


def _beyond(spec: Json) -> Iterator[str]:
    """Yield what a service has beside its cluster address, or of other protocols: nothing of it is done."""
    kind = spec.get("type")
    if kind in ("NodePort", "LoadBalancer"):
        yield f"spec.type: {kind} is not supported: {_ONLY}"
    if spec.get("externalIPs"):
        yield f"spec.externalIPs: not supported: {_ONLY}"
    if any(":" in one for one in spec.get("clusterIPs") or ()):
        yield "spec.clusterIPs: IPv6 is not supported: only the IPv4 address is served"
    for port in spec.get("ports") or ():
        number, protocol = require_port(int(port["port"])), port.get("protocol") or "TCP"
        if protocol not in PROTOCOLS:
            yield f"spec.ports: {protocol} is not supported: port {number} is left alone"
