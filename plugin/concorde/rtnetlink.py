"""What `ip` and `bridge` would need a process for, asked of the kernel directly: a tenth of a millisecond.

Source: rtnetlink(7); linux/rtnetlink.h, linux/if_link.h, linux/neighbour.h.
"""

from __future__ import annotations

import os
from struct import pack, unpack_from

from .netlink import (
    ACK,
    CREATE,
    DUMP,
    ECHO,
    EXCLUSIVE,
    REPLACE,
    ask,
    attribute,
    attributes,
    named,
    nested,
    tell,
    text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

    from .netlink import Attributes

_NEWLINK, _GETLINK, _SETLINK, _NEWNEIGH, _DELNEIGH = 16, 18, 19, 28, 29  # RTM_*
_NEWQDISC, _GETQDISC = 36, 38
_UP = 0x1  # IFF_UP
_BRIDGE_FAMILY = 7  # AF_BRIDGE

_IFNAME, _LINK, _MASTER_LINK, _PROTINFO, _LINKINFO, _ADDRESS = 3, 5, 10, 12, 18, 1  # IFLA_*
_ALIAS = 20
_LINK_NETNSID, _TARGET_NETNSID = 37, 46
_KIND, _DATA = 1, 2  # IFLA_INFO_*
# IFLA_BRPORT_LEARNING, _UNICAST_FLOOD, _MULTICAST_ROUTER, _GROUP_FWD_MASK (Linux 4.15)
_PORT_LEARNING, _PORT_FLOOD, _PORT_ROUTER, _PORT_MASK = 8, 9, 25, 31
# IFLA_BRPORT_MCAST_MAX_GROUPS (Linux 6.3; before, the kernel takes no notice): how many groups a bridge that
# looks into IGMP and MLD keeps of a port. There is room for 4,096 of all ports' together; when it is full, it
# looks no more, and all get all groups' packets (net/bridge/br_multicast.c, br_multicast_new_group).
_PORT_GROUPS = 42
MOST_GROUPS = 128
# Frames to 01:80:c2:00:00:0x, but for PAUSE, which the bridge always drops. They would be the node's own,
# past every hook of the bridge (net/bridge/br_input.c, br_handle_frame); so they are treated like all others.
ALL_GROUPS = 0xFFFD
# Of a device that carries Ethernet in UDP: where its attributes have the lower device, the port, and the
# addresses of both ends (IFLA_VXLAN_LINK, _PORT, _LOCAL, _GROUP; IFLA_GENEVE_PORT, _REMOTE).
_TUNNELS = {"vxlan": (3, 15, 4, 2), "geneve": (0, 5, 0, 2)}  # 0 is no attribute

_LLADDR = 2  # NDA_LLADDR
_NOARP = 0x40  # NUD_NOARP: to a bridge, an entry that does not age
_MASTER, _STICKY = 0x04, 0x40  # NTF_*: of the bridge; never moved to another port (Linux 4.20)

_LOOPBACK = 1  # the index of `lo` in every network namespace
_ROOT = 0xFFFFFFFF  # TC_H_ROOT
_QDISC_KIND, _QDISC_OPTIONS = 1, 2  # TCA_KIND, TCA_OPTIONS
_FLOWS, _HTB_INIT = 5, 2  # TCA_FQ_CODEL_FLOWS, TCA_HTB_INIT

NO_SUCH_DEVICE = 19  # ENODEV
NO_SUCH_THING = 2  # ENOENT
THERE_ALREADY = 17  # EEXIST
_INVALID = 22  # EINVAL


class Tunnel:
    """A VTEP of the node: its device, its UDP port, and the lower device its packets come by, or empty.

    `index` is the device's number; `local` and `remote` are IPv4 addresses that it was given, 0 if none.
    """

    def __init__(
        self, device: str, port: int, lower: str, index: int = 0, local: int = 0, remote: int = 0
    ) -> None:
        self.device = device
        self.port = port
        self.lower = lower
        self.index = index
        self.local = local
        self.remote = remote


def ifinfo(index: int = 0, up: int = 0) -> bytes:
    """struct ifinfomsg: which link is meant, and with `up` that it is to be so."""
    return pack("=BxHiII", 0, 0, index, up, up)


def link_kind(name: str) -> str | None:
    """A link's kind, such as `bridge`; empty for one without, None if there is no such link."""
    found = _link(name)
    return None if found is None else _kind(found)


def identity(name: str) -> tuple[str, str, str]:
    """A link's kind, its alias and its hardware address; empty for what it has not, or if there is none."""
    found = _link(name) or {}
    return _kind(found), text(found.get(_ALIAS, b"")), found.get(_ADDRESS, b"").hex(":")


def peer_address(name: str) -> str:
    """The hardware address of a veth pair's other end, wherever that is; empty if the kernel does not tell.

    Source: IFLA_TARGET_NETNSID, Linux 4.20.
    """
    found = _link(name)
    if found is None or _LINK not in found:
        return ""
    (index,) = unpack_from("=i", found[_LINK])
    target = b""
    if _LINK_NETNSID in found:
        target = attribute(_TARGET_NETNSID, found[_LINK_NETNSID])
    try:
        for peer in ask(_GETLINK, 0, ifinfo(index) + target):
            return attributes(peer, 16).get(_ADDRESS, b"").hex(":")
    except OSError:
        pass
    return ""


def beneath(name: str) -> list[str]:
    """What carries a link's packets: a VLAN's or a tunnel's lower device, a bridge's or a bond's ports.

    A veth's other end is none, nor what is in another network namespace. Raises OSError.
    """
    found = _link(name)
    if found is None or _kind(found) == "veth":
        return []
    lower = unpack_from("=I", found[_LINK])[0] if _LINK in found and _LINK_NETNSID not in found else 0
    master = attribute(_MASTER_LINK, pack("=i", index_of(name)))
    ports = [attributes(message, 16) for message in ask(_GETLINK, DUMP, ifinfo() + master)]
    return [*filter(None, [name_of(lower)]), *(text(port[_IFNAME]) for port in ports)]


def tunnels() -> list[Tunnel]:
    """All VTEPs of this network namespace, those that are down too."""
    found = []
    for kind, (lower, port, *ends) in _TUNNELS.items():
        asked = nested(_LINKINFO, attribute(_KIND, kind.encode()))
        for message in ask(_GETLINK, DUMP, ifinfo() + asked):
            link = attributes(message, 16)
            if _kind(link) != kind:
                break  # the kernel does not know this kind, and lists all links; there can be none of it
            data = attributes(attributes(link[_LINKINFO]).get(_DATA, b""))
            below = unpack_from("=I", data[lower])[0] if lower in data else 0
            (number,) = unpack_from("!H", data.get(port, bytes(2)))
            (index,) = unpack_from("=i", message, 4)
            local, remote = (int.from_bytes(data.get(end, b""), "big") for end in ends)
            found.append(Tunnel(text(link[_IFNAME]), number, name_of(below), index, local, remote))
    return found


def close_port(port: str, address: str) -> None:
    """Let a bridge's port lead to one hardware address and no other, and learn nothing there.

    The bridge then neither moves that address to another port nor floods frames for unknown ones to this
    one, takes none behind it for a router, and none of its frames for one to the node's own stack; of groups
    it keeps a share. The address first: at no moment is the port without its entry. Raises OSError.
    """
    index = index_of(port)
    tell(_NEWNEIGH, CREATE | REPLACE, _bound(index, address))
    tell(_SETLINK, 0, _port(index, 0, ALL_GROUPS, MOST_GROUPS))


def open_port(port: str, address: str) -> None:
    """Make a port as the kernel makes one, for who goes on without close_port(). Raises OSError.

    The address last: until the bridge learns it, frames for it are flooded.
    """
    index = index_of(port)
    tell(_SETLINK, 0, _port(index, 1, 0, 0))
    try:
        tell(_DELNEIGH, 0, _bound(index, address))
    except OSError as error:
        if error.errno != NO_SUCH_THING:
            raise


def _bound(index: int, address: str) -> bytes:
    """The entry that binds a hardware address to a bridge's port."""
    lladdr = attribute(_LLADDR, bytes.fromhex(address.replace(":", "")))
    return pack("=BxxxiHBB", _BRIDGE_FAMILY, index, _NOARP, _MASTER | _STICKY, 0) + lladdr


def _port(index: int, on: int, mask: int, groups: int) -> bytes:
    """A bridge's port: whether it learns, gets floods and routers, and what of groups; 0 groups: no limit."""
    switches = _PORT_LEARNING, _PORT_FLOOD, _PORT_ROUTER
    settings = b"".join(attribute(kind, pack("B", on)) for kind in switches)
    settings += attribute(_PORT_MASK, pack("=H", mask))
    settings += attribute(_PORT_GROUPS, pack("=I", groups))
    return pack("=BxHiII", _BRIDGE_FAMILY, 0, index, 0, 0) + nested(_PROTINFO, settings)


def qdisc_kind(index: int, parent: int) -> str:
    """The kind of what a link has below a class, of which the number is given. Raises OSError."""
    asked = pack("=BxxxiIII", 0, index, 0, parent, 0)
    for message in ask(_GETQDISC, ACK | ECHO, asked):  # without the echo older kernels tell only others
        return text(attributes(message, 20)[_QDISC_KIND])
    return ""  # what the kernel put there by itself


def root_htb(index: int, kernel: socket) -> tuple[int, int] | None:
    """Handle and default class of the HTB that a link has as its root, if it has one. Raises OSError."""
    for message in ask(_GETQDISC, ACK | ECHO, pack("=BxxxiIII", 0, index, 0, _ROOT, 0), kernel):
        said = attributes(message, 20)
        if text(said[_QDISC_KIND]) == "htb":
            whole = attributes(said.get(_QDISC_OPTIONS, b"")).get(_HTB_INIT, bytes(20))
            return unpack_from("=8xI", message)[0], unpack_from("=8xI", whole)[0]
    return None


def has_fq_codel() -> bool:
    """Whether the kernel has it, which may make it load a module.

    It is asked for one with no flows, which cannot be made: the kernel says so only if it knows the kind
    (net/sched/sch_api.c, qdisc_create; net/sched/sch_fq_codel.c, fq_codel_change).
    """
    wanted = named(_QDISC_KIND, "fq_codel")
    wanted += nested(_QDISC_OPTIONS, attribute(_FLOWS, pack("=I", 0)))
    asked = pack("=BxxxiIII", 0, _LOOPBACK, 0, _ROOT, 0)
    try:
        tell(_NEWQDISC, CREATE | REPLACE | EXCLUSIVE, asked + wanted)
    except OSError as error:
        return error.errno == _INVALID
    return False


def take_down(name: str) -> None:
    """Let nothing pass a link any more, if it is there. Raises OSError."""
    try:
        tell(_NEWLINK, 0, pack("=BxHiII", 0, 0, index_of(name), 0, _UP))
    except OSError as error:
        if error.errno != NO_SUCH_DEVICE:
            raise


def _link(name: str) -> Attributes | None:
    body = ifinfo() + named(_IFNAME, name)
    try:
        for message in ask(_GETLINK, 0, body):
            return attributes(message, 16)
    except OSError as error:
        if error.errno != NO_SUCH_DEVICE:
            raise
    return None


def index_of(name: str, kernel: socket | None = None) -> int:
    """A link's number, in the namespace of a socket, or in ours. Raises OSError."""
    body = ifinfo() + named(_IFNAME, name)
    for message in ask(_GETLINK, 0, body, kernel):
        return int(unpack_from("=i", message, 4)[0])
    raise OSError(NO_SUCH_DEVICE, os.strerror(NO_SUCH_DEVICE), name)


def name_of(index: int) -> str:
    """The name of the link with this number; empty for 0. Raises OSError."""
    if index == 0:
        return ""
    for message in ask(_GETLINK, 0, ifinfo(index)):
        return text(attributes(message, 16)[_IFNAME])
    return ""


def _kind(link: Attributes) -> str:
    return text(attributes(link.get(_LINKINFO, b"")).get(_KIND, b""))
