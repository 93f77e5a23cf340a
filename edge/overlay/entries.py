"""What a node's kernel knows of the other nodes of an overlay, one record a kind of entry, and its messages.

Nothing here asks the kernel, and nothing here fails: what is not as it should be is no message. Source:
rtnetlink(7); linux/rtnetlink.h, linux/neighbour.h.

A device that was made with ``proxy`` and ``l2miss``, whose neighbours are solicited from programs
(``app_solicit``), asks by RTM_GETNEIGH, whatever the program that set it up. What is asked is told by what is
there (drivers/net/vxlan/vxlan_core.c, vxlan_fdb_miss; net/core/neighbour.c, neigh_app_ns):

* an address and no MAC: whose address is this? flannel's L3 miss;
* a MAC and no address: behind which node is it? flannel's L2 miss;
* both: is that still so? asked of an entry that was not confirmed for a while.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from struct import pack, unpack_from
from typing import NamedTuple, Union

from edge import netlink as nl

_ONLINK = 4  # RTNH_F_ONLINK


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


class NeighbourMessage(NamedTuple):
    """What a message says of a neighbour or a forwarding entry of an IPv4 network."""

    family: int
    device: int  # its index
    state: int
    address: IPv4Address | None
    mac: str | None


class LinkMessage(NamedTuple):
    """What a message says of a device."""

    device: int  # its index
    name: str
    mac: str


def read_neighbour(body: bytes) -> NeighbourMessage | None:
    """Return what a message about a neighbour says; None if it is not whole, or not of IPv4."""
    found = _attributes(body, nl.NDMSG)
    if found is None:
        return None
    family, index, state = unpack_from("=BxxxiH", body)
    address, mac = found.get(nl.NDA_DST), found.get(nl.NDA_LLADDR)
    if family not in (nl.AF_INET, nl.AF_BRIDGE):
        return None
    if (address is not None and len(address) != 4) or (mac is not None and len(mac) != 6):
        return None
    return NeighbourMessage(
        family,
        index,
        state,
        None if address is None else IPv4Address(address),
        None if mac is None else mac.hex(":"),
    )


def read_link(body: bytes) -> LinkMessage | None:
    """Return what a message about an Ethernet device says; None if it is not whole, or of another device."""
    found = _attributes(body, nl.IFINFOMSG)
    if found is None:
        return None
    (index,) = unpack_from("=i", body, 4)
    name, mac = nl.text(found.get(nl.IFLA_IFNAME, b"")), found.get(nl.IFLA_ADDRESS, b"")
    return LinkMessage(index, name, mac.hex(":")) if name and len(mac) == 6 else None


def read_route(body: bytes, index: int) -> Route | None:
    """Return a route by a gateway on a device, of the main table; None if the message is about another."""
    found = _attributes(body, nl.RTMSG)
    if found is None:
        return None
    family, length, table, kind = unpack_from("=BBxxBxxB", body)
    subnet, gateway = found.get(nl.RTA_DST, b""), found.get(nl.RTA_GATEWAY, b"")
    if (family, table, kind) != (nl.AF_INET, nl.RT_TABLE_MAIN, nl.RTN_UNICAST):
        return None
    if len(subnet) != 4 or len(gateway) != 4 or found.get(nl.RTA_OIF) != pack("=i", index):
        return None
    try:
        return Route(IPv4Network((subnet, length)), IPv4Address(gateway))
    except ValueError:
        return None


def body_of(index: int, entry: Entry, state: int) -> bytes:
    """Return the body of a message that names an entry of a device; a neighbour also has a state."""
    if isinstance(entry, Neighbour):
        mac = nl.attribute(nl.NDA_LLADDR, _packed(entry.mac)) if entry.mac else b""
        return nl.ndmsg(nl.AF_INET, index, state) + nl.attribute(nl.NDA_DST, entry.address.packed) + mac
    if isinstance(entry, Forwarding):
        # Of the device itself, not of a bridge that it may be a port of.
        head = nl.ndmsg(nl.AF_BRIDGE, index, nl.NUD_PERMANENT, nl.NTF_SELF)
        mac = nl.attribute(nl.NDA_LLADDR, _packed(entry.mac))
        return head + mac + nl.attribute(nl.NDA_DST, entry.address.packed)
    bits, kind = entry.subnet.prefixlen, nl.RTN_UNICAST
    return (
        nl.rtmsg(bits, nl.RT_TABLE_MAIN, nl.RTPROT_BOOT, kind, _ONLINK)
        + nl.attribute(nl.RTA_DST, entry.subnet.network_address.packed)
        + nl.attribute(nl.RTA_GATEWAY, entry.via.packed)
        + nl.u32(nl.RTA_OIF, index)
    )


def _attributes(body: bytes, at: int) -> nl.Attributes | None:
    """Return the attributes that follow a message's head; None if head or attributes are not whole."""
    try:
        return nl.attributes(body, at)
    except ValueError:
        return None


def _packed(mac: str) -> bytes:
    return bytes.fromhex(mac.replace(":", ""))
