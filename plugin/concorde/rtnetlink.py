"""What `ip` and `bridge` would need a process for, asked of the kernel directly: a tenth of a millisecond.

Source: rtnetlink(7); linux/rtnetlink.h, linux/if_link.h, linux/neighbour.h.
"""

from __future__ import annotations

import os
from struct import pack, unpack_from

from edge import netlink as nl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Iterator

    from edge.netlink import Attributes

# IFLA_BRPORT_LEARNING, _UNICAST_FLOOD, _MULTICAST_ROUTER, _GROUP_FWD_MASK (Linux 4.15), _MODE (hairpin)
_PORT_LEARNING, _PORT_FLOOD, _PORT_ROUTER, _PORT_MASK, _PORT_MODE = 8, 9, 25, 31, 4
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

NO_NUMBER = pack("=i", -1)  # NETNSA_NSID_NOT_ASSIGNED
LOOPBACK = 1  # the index of `lo` in every network namespace
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


def link_kind(name: str) -> str | None:
    """A link's kind, such as `bridge`; empty for one without, None if there is no such link."""
    found = _attributes(name)
    return None if found is None else _kind(found)


def identity(name: str) -> tuple[str, str, str]:
    """A link's kind, its alias and its hardware address; empty for what it has not, or if there is none."""
    found = _attributes(name) or {}
    return _kind(found), nl.text(found.get(nl.IFLA_IFALIAS, b"")), found.get(nl.IFLA_ADDRESS, b"").hex(":")


def peer_address(name: str) -> str:
    """The hardware address of a veth pair's other end, wherever that is; empty if the kernel does not tell.

    Source: IFLA_TARGET_NETNSID, Linux 4.20.
    """
    found = _attributes(name)
    if found is None or nl.IFLA_LINK not in found:
        return ""
    (index,) = unpack_from("=i", found[nl.IFLA_LINK])
    (number,) = unpack_from("=i", found.get(nl.IFLA_LINK_NETNSID, NO_NUMBER))
    try:
        peer = link(index=index, number=number)
    except OSError:
        return ""
    return nl.attributes(peer, nl.IFINFOMSG).get(nl.IFLA_ADDRESS, b"").hex(":")


def beneath(name: str) -> list[str]:
    """What carries a link's packets: a VLAN's or a tunnel's lower device, a bridge's or a bond's ports.

    A veth's other end is none, nor what is in another network namespace. Raises OSError.
    """
    found = _attributes(name)
    if found is None or _kind(found) == "veth":
        return []
    is_here = nl.IFLA_LINK in found and nl.IFLA_LINK_NETNSID not in found
    lower = unpack_from("=I", found[nl.IFLA_LINK])[0] if is_here else 0
    master = nl.attribute(nl.IFLA_MASTER, pack("=i", index_of(name)))
    ports = (port for _, port in links(master))
    return [*filter(None, [name_of(lower)]), *(nl.text(port[nl.IFLA_IFNAME]) for port in ports)]


def tunnels() -> list[Tunnel]:
    """All VTEPs of this network namespace, those that are down too."""
    found = []
    for kind, (lower, port, *ends) in _TUNNELS.items():
        asked = nl.nested(nl.IFLA_LINKINFO, nl.attribute(nl.IFLA_INFO_KIND, kind.encode()))
        for index, said in links(asked):
            if _kind(said) != kind:
                break  # the kernel does not know this kind, and lists all links; there can be none of it
            data = nl.attributes(nl.attributes(said[nl.IFLA_LINKINFO]).get(nl.IFLA_INFO_DATA, b""))
            below = unpack_from("=I", data[lower])[0] if lower in data else 0
            (number,) = unpack_from("!H", data.get(port, bytes(2)))
            local, remote = (int.from_bytes(data.get(end, b""), "big") for end in ends)
            found.append(Tunnel(nl.text(said[nl.IFLA_IFNAME]), number, name_of(below), index, local, remote))
    return found


def close_port(port: str, address: str, hairpin: bool = False) -> None:
    """Let a bridge's port lead to one hardware address and no other, and learn nothing there.

    The bridge then neither moves that address to another port nor floods frames for unknown ones to this
    one, takes none behind it for a router, and none of its frames for one to the node's own stack; of groups
    it keeps a share. The address first: at no moment is the port without its entry.

    With `hairpin` frames may leave by the port they came by: a pod's to a service of which it is an endpoint
    itself, where bridged packets pass the node's rules (net/bridge/br_forward.c, should_deliver). Its own
    broadcasts come back then, too. IPv4 drops them, since they are from its own address
    (net/ipv4/fib_frontend.c, fib_validate_source); ARP of its own hardware address is no conflict (RFC 5227,
    2.4), nor is IPv6's own question for duplicates (RFC 7527; Linux 4.10). Otherwise the port's mode is left
    alone. Raises OSError.
    """
    index = index_of(port)
    nl.tell(nl.RTM_NEWNEIGH, nl.CREATE | nl.REPLACE, _bound(index, address))
    mode = nl.attribute(_PORT_MODE, b"\1") if hairpin else b""
    nl.tell(nl.RTM_SETLINK, 0, _port(index, 0, ALL_GROUPS, MOST_GROUPS, mode))


def open_port(port: str, address: str) -> None:
    """Make a port as the kernel makes one, for who goes on without close_port(). Raises OSError.

    The address last: until the bridge learns it, frames for it are flooded.
    """
    index = index_of(port)
    nl.tell(nl.RTM_SETLINK, 0, _port(index, 1, 0, 0))
    with nl.Ignoring(NO_SUCH_THING):
        nl.tell(nl.RTM_DELNEIGH, 0, _bound(index, address))


def _bound(index: int, address: str) -> bytes:
    """The entry that binds a hardware address to a bridge's port."""
    lladdr = nl.attribute(nl.NDA_LLADDR, bytes.fromhex(address.replace(":", "")))
    # NOARP: to a bridge, an entry that does not age; MASTER: of the bridge; STICKY: never moved to another
    # port (Linux 4.20).
    flags = nl.NTF_MASTER | nl.NTF_STICKY
    return nl.ndmsg(nl.AF_BRIDGE, index, nl.NUD_NOARP, flags) + lladdr


def _port(index: int, on: int, mask: int, groups: int, more: bytes = b"") -> bytes:
    """A bridge's port: whether it learns, gets floods and routers, and what of groups; 0 groups: no limit."""
    switches = _PORT_LEARNING, _PORT_FLOOD, _PORT_ROUTER
    settings = b"".join(nl.attribute(kind, pack("B", on)) for kind in switches)
    settings += nl.attribute(_PORT_MASK, pack("=H", mask))
    settings += nl.u32(_PORT_GROUPS, groups) + more
    return nl.ifinfomsg(index, family=nl.AF_BRIDGE) + nl.nested(nl.IFLA_PROTINFO, settings)


def qdisc_kind(index: int, parent: int) -> str:
    """The kind of what a link has below a class, of which the number is given. Raises OSError."""
    asked = nl.tcmsg(index, parent=parent)
    # Without the echo older kernels tell only others.
    for message in nl.ask(nl.RTM_GETQDISC, nl.ACK | nl.ECHO, asked):
        return nl.text(nl.attributes(message, nl.TCMSG)[nl.TCA_KIND])
    return ""  # what the kernel put there by itself


def has_root(index: int) -> bool:
    """Whether a link was given a root qdisc; the kernel's own choice has no handle. Raises OSError."""
    asked = nl.tcmsg(index, parent=nl.TC_H_ROOT)
    answers = nl.ask(nl.RTM_GETQDISC, nl.ACK | nl.ECHO, asked)
    return any(unpack_from("=8xI", message)[0] for message in answers)


def root_htb(index: int, kernel: socket) -> tuple[int, int] | None:
    """Handle and default class of the HTB that a link has as its root, if it has one. Raises OSError."""
    asked = nl.tcmsg(index, parent=nl.TC_H_ROOT)
    for message in nl.ask(nl.RTM_GETQDISC, nl.ACK | nl.ECHO, asked, kernel):
        said = nl.attributes(message, nl.TCMSG)
        if nl.text(said[nl.TCA_KIND]) == "htb":
            whole = nl.attributes(said.get(nl.TCA_OPTIONS, b"")).get(_HTB_INIT, bytes(20))
            return unpack_from("=8xI", message)[0], unpack_from("=8xI", whole)[0]
    return None


def has_fq_codel() -> bool:
    """Whether the kernel has it, which may make it load a module.

    It is asked for one with no flows, which cannot be made: the kernel says so only if it knows the kind
    (net/sched/sch_api.c, qdisc_create; net/sched/sch_fq_codel.c, fq_codel_change).
    """
    wanted = nl.named(nl.TCA_KIND, "fq_codel") + nl.nested(nl.TCA_OPTIONS, nl.u32(_FLOWS, 0))
    asked = nl.tcmsg(LOOPBACK, parent=nl.TC_H_ROOT)
    try:
        nl.tell(nl.RTM_NEWQDISC, nl.CREATE | nl.REPLACE | nl.EXCLUSIVE, asked + wanted)
    except OSError as error:
        return error.errno == _INVALID
    return False


def take_down(name: str) -> None:
    """Let nothing pass a link any more, if it is there. Raises OSError."""
    with nl.Ignoring(NO_SUCH_DEVICE):
        nl.tell(nl.RTM_NEWLINK, 0, nl.ifinfomsg(index_of(name), change=nl.IFF_UP))


def link(name: str = "", index: int = 0, number: int = -1, kernel: socket | None = None) -> bytes:
    """What the kernel says of a link (struct ifinfomsg and attributes), by its name or its number.

    It is in the namespace that has this number here, or in that of a socket, or in ours. Raises OSError.
    """
    body = nl.ifinfomsg(index)
    if number >= 0:
        body += nl.attribute(nl.IFLA_TARGET_NETNSID, pack("=i", number))
    if name:
        body += nl.named(nl.IFLA_IFNAME, name)
    for message in nl.ask(nl.RTM_GETLINK, 0, body, kernel):
        return message
    raise OSError(NO_SUCH_DEVICE, os.strerror(NO_SUCH_DEVICE), name or str(index))


def links(which: bytes = b"") -> Iterator[tuple[int, Attributes]]:
    """Number and attributes of all links, or of those that some attributes name. Raises OSError."""
    for message in nl.ask(nl.RTM_GETLINK, nl.DUMP, nl.ifinfomsg() + which):
        yield unpack_from("=i", message, 4)[0], nl.attributes(message, nl.IFINFOMSG)


def _attributes(name: str) -> Attributes | None:
    """A link's; None if there is no such link."""
    with nl.Ignoring(NO_SUCH_DEVICE):
        return nl.attributes(link(name), nl.IFINFOMSG)
    return None


def index_of(name: str, kernel: socket | None = None) -> int:
    """A link's number, in the namespace of a socket, or in ours. Raises OSError."""
    return int(unpack_from("=i", link(name, kernel=kernel), 4)[0])


def name_of(index: int) -> str:
    """The name of the link with this number; empty for 0. Raises OSError."""
    return nl.text(nl.attributes(link(index=index), nl.IFINFOMSG)[nl.IFLA_IFNAME]) if index else ""


def _kind(link: Attributes) -> str:
    return nl.text(nl.attributes(link.get(nl.IFLA_LINKINFO, b"")).get(nl.IFLA_INFO_KIND, b""))
