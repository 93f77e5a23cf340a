"""Which node has which subnet: flannel's records, as nodes tell them each other in a store.

A value that is not what flannel writes is no lease, and UnfitError says why: what comes from a store goes
into the kernel, so nothing is guessed. Source: flannel, ``pkg/lease/lease.go`` and ``pkg/backend/vxlan``.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from edge.http import UnfitError, json_object

BACKEND = "vxlan"
_KEY = re.compile(r"(\d{1,3}(?:\.\d{1,3}){3})-(\d{1,2})")
T = TypeVar("T", IPv4Address, IPv4Network)

_MAC = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}")


class Lease(NamedTuple):
    """A node's subnet, the node's address on the underlay, and the MAC of its VTEP."""

    subnet: IPv4Network
    address: IPv4Address
    mac: str

    @property
    def vtep(self) -> IPv4Address:
        """The VTEP's own address: the subnet's first."""
        return self.subnet.network_address


class Store(Protocol):
    """The leases of one overlay, the own one among them; one module a kind of store.

    It is asked in a thread of its own, and may be away: what was learned of it holds until it is back.
    """

    def follow(self) -> Iterator[Sequence[Lease]]:
        """Keep the own lease in the store, and yield all leases, again at each change.

        Those that were written last stand at the end. It ends when it is time to ask for all of them anew:
        after a silence, or when the store has forgotten what changed since. Raises AwayError.
        """


def key_of(subnet: IPv4Network) -> str:
    """Return the last part of a subnet's key: ``10.1.24.0-24``."""
    return f"{subnet.network_address}-{subnet.prefixlen}"


def subnet_of(key: str) -> IPv4Network:
    """Return the subnet that the last part of a key names. Raises UnfitError."""
    match = _KEY.fullmatch(key)
    if match is None:
        raise UnfitError(f"the key {key[:40]!r} is not like 10.1.24.0-24")
    return parse_subnet(f"{match[1]}/{match[2]}")


def parse_subnet(text: object) -> IPv4Network:
    """Return a subnet that is written as 10.1.24.0/24. Raises UnfitError."""
    return parsed(IPv4Network, "the subnet", text)


def parsed(kind: type[T], what: str, text: object) -> T:
    """Return an address or a network that a text is. Raises UnfitError with its name and the text."""
    try:
        if not isinstance(text, str):
            raise ValueError("must be a string")
        return kind(text)
    except ValueError as error:
        raise UnfitError(f"{what} {str(text)[:40]!r}: {error}") from None


def parse(subnet: IPv4Network, text: str | bytes) -> Lease:
    """Return the lease that a value of etcd's says. Raises UnfitError."""
    value = json_object(text, "the value")
    return of_parts(subnet, value.get("PublicIP"), value.get("BackendType"), value.get("BackendData"))


def of_parts(subnet: IPv4Network, address: object, backend: object, data: object) -> Lease:
    """Return the lease of a subnet; ``data`` is the backend's own, text or parsed. Raises UnfitError."""
    if backend != BACKEND:
        raise UnfitError(f"the backend is {str(backend)[:40]!r}, not {BACKEND!r}")
    if isinstance(data, str):
        data = json_object(data, "the backend's data")
    mac = data.get("VtepMAC") if isinstance(data, dict) else None
    return Lease(subnet, _address(address), _vtep_mac(mac))


def text_of(lease: Lease) -> str:
    """Return the value that etcd has of a lease."""
    data = {"VtepMAC": lease.mac}
    value = {"PublicIP": str(lease.address), "BackendType": BACKEND, "BackendData": data}
    return json.dumps(value, separators=(",", ":"))


def _address(text: object) -> IPv4Address:
    address = parsed(IPv4Address, "the public address", text)
    if address.is_multicast or address.is_unspecified or address.is_loopback or address.is_reserved:
        raise UnfitError(f"the public address {address} cannot be a node's")
    return address


def _vtep_mac(text: object) -> str:
    mac = text.lower() if isinstance(text, str) else ""
    if not _MAC.fullmatch(mac):
        raise UnfitError(f"the VTEP's MAC {str(text)[:40]!r} is not like ee:c6:29:27:73:7a")
    if int(mac[:2], 16) & 1 or mac == "00:00:00:00:00:00":
        raise UnfitError(f"the VTEP's MAC {mac} cannot be a device's")
    return mac


def line(lease: Lease) -> str:
    """Return what report() says of a lease."""
    return f"{lease.subnet} at {lease.mac} behind {lease.address}"


def report(path: Path, leases: Iterable[Lease]) -> None:
    """Write a file with the leases that a resolver knows, whole or not at all. Raises OSError."""
    new = path.with_name(f"{path.name}.new")
    new.write_text("".join(f"{line(lease)}\n" for lease in sorted(leases)), encoding="utf-8")
    os.replace(new, path)  # noqa: PTH105 (as atomic as the kernel's)
