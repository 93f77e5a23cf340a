"""What a node's kernel knows of the other nodes of an overlay, one record a kind of entry."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import NamedTuple, Union


class Neighbour(NamedTuple):
    """At which MAC an address of the overlay is; an empty one is not known."""

    address: IPv4Address
    mac: str


class Forwarding(NamedTuple):
    """Behind which node, by its address on the underlay, a MAC of the overlay is."""

    mac: str
    address: IPv4Address


class Route(NamedTuple):
    """By which address of the overlay, on no network of the device's own, a subnet is reached."""

    subnet: IPv4Network
    via: IPv4Address


Entry = Union[Neighbour, Forwarding, Route]


class Set(NamedTuple):
    """An entry that is to be, in the place of the one that is there."""

    entry: Entry
    lasting: bool = True  # a neighbour that does not is forgotten unless it is confirmed


class Remove(NamedTuple):
    """An entry that is to be no more."""

    entry: Entry


Change = Union[Set, Remove]


class Known(NamedTuple):
    """A neighbour as the kernel holds it."""

    mac: str  # empty: asked for, or not to be found
    state: int  # as netlink says it


class Held(NamedTuple):
    """All that the kernel holds for a device."""

    neighbours: dict[IPv4Address, Known]
    forwarding: dict[str, IPv4Address]
    routes: dict[IPv4Network, IPv4Address]
