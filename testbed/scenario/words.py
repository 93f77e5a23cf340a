"""The words that all parts of a scenario are made of: names, rates, times, addresses."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_interface, ip_network
from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
    WithJsonSchema,
)

from testbed.scenario.texts import shortened, unshown
from testbed.scenario.units import format_rate, parse_rate


def _showable(text: str) -> str:
    """Refuse what a terminal would take for an order, and what no SVG file may hold."""
    for char in unshown(text):
        raise ValueError(f"must not contain U+{ord(char):04X}, which is not printable")
    return text


def _no_number(value: object) -> object:
    """Refuse the number that an address also is: nobody writes it so, but by mistake."""
    if isinstance(value, (bool, int, float)):
        raise ValueError(f"must be a string such as 172.16.0.0, not the number {value}")
    return value


def _without_host_bits(value: object) -> object:
    """Refuse an address of a network in its place, and say which is meant."""
    if not isinstance(_no_number(value), str):
        return value
    try:
        meant = ip_network(str(value), strict=False)
    except ValueError:
        return value  # no network at all, which is said elsewhere
    if meant.network_address != ip_interface(str(value)).ip:
        raise ValueError(f"has host bits set: {meant} is meant")
    return value


Rate = Annotated[
    int,
    BeforeValidator(parse_rate),
    PlainSerializer(format_rate, return_type=str),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": r"^(\d+(\.\d+)?|\.\d+)([kMGT]|[KMGT]i|[eE][+-]?\d{1,2})?$"},
                {"type": "number", "exclusiveMinimum": 0},
            ],
            "description": "bits per second as a Kubernetes quantity: 1G, 250M, 0.5Gi",
        }
    ),
]
# A DNS label (RFC 1123), but capitals are welcome: the paper's pods are called A-1.
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?$")]


def _dns_label(text: str) -> str:
    """Refuse what is no DNS label (RFC 1123)."""
    if not re.fullmatch(DNS_LABEL, text):
        raise ValueError(f"{shortened(text)!r} is not a DNS label: a-z, 0-9 and dashes within, at most 63")
    return text


DNS_LABEL = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
# What Kubernetes takes for the name of a Service or a container.
DnsLabel = Annotated[
    str, AfterValidator(_dns_label), WithJsonSchema({"type": "string", "pattern": DNS_LABEL})
]
# What people read, in tables, figures and on terminals.
Title = Annotated[str, AfterValidator(_showable)]
Seconds = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, lt=1)]
Network = Annotated[
    IPv4Network,
    BeforeValidator(_without_host_bits),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "description": "an IPv4 network: 172.16.0.0/16"}),
]
Network6 = Annotated[
    IPv6Network,
    BeforeValidator(_without_host_bits),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "description": "an IPv6 network: fd62::/112"}),
]
Address = Annotated[
    IPv4Address,
    BeforeValidator(_no_number),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "description": "an IPv4 address: 192.168.56.13"}),
]
# The kernel's rule (dev_valid_name in net/core/dev.c), less what is special to ip and tc on a command line.
Interface = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}$")]
# Of a node (k8s.io/apimachinery/pkg/util/validation: IsQualifiedName, IsValidLabelValue).
_LABEL = r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_DOMAIN = r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"
Label = Annotated[str, StringConstraints(pattern=rf"^({_DOMAIN}/)?{_LABEL}$")]
LabelValue = Annotated[str, StringConstraints(pattern=rf"^({_LABEL})?$")]


class Part(BaseModel):
    """Base of every part of a scenario: immutable, and an unknown field is an error."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, validate_default=True, defer_build=True
    )
