"""Messages to the kernel and its answers, as netlink(7) lays them out, in the machine's own byte order.

The one library for it: the programs of this package use it, and the plugin, whose build takes it along; so
the standard library alone, from Python 3.9 on, and of that what costs next to nothing to import. Names are
the kernel's: linux/netlink.h, rtnetlink.h, if_link.h, if_addr.h, neighbour.h, pkt_sched.h. Numbers that one
module alone needs stand there.
"""

from __future__ import annotations

import os
from struct import Struct, pack, unpack_from

try:  # not socket, which loads selectors and enum
    import _socket as _own
except ImportError:  # it is Python's own, and may go
    import socket as _own  # type: ignore[no-redef]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Iterable, Iterator

    Attributes = dict[int, bytes]

sockets = _own

ROUTE, NETFILTER = 0, 12  # NETLINK_*
ERROR, DONE = 2, 3  # NLMSG_*
REQUEST, ACK, ECHO, DUMP = 0x1, 0x4, 0x8, 0x300  # NLM_F_*
REPLACE, EXCLUSIVE, CREATE, APPEND = 0x100, 0x200, 0x400, 0x800
_CAPPED, _WITH_TEXT = 0x100, 0x200  # NLM_F_CAPPED, _ACK_TLVS: of an error
NESTED, _KIND = 0x8000, 0x3FFF  # NLA_F_NESTED, NLA_TYPE_MASK
_HEAD = Struct("=HH").unpack_from  # struct nlattr
_LARGEST_ANSWER = 1 << 15  # net/netlink/af_netlink.c, netlink_recvmsg(): no part of a dump is larger
SOL_NETLINK, _CAP_ACK, _EXT_ACK, STRICT = 270, 10, 11, 12  # NETLINK_*; of dumps: GET_STRICT_CHK, Linux 4.20
_TEXT = 1  # NLMSGERR_ATTR_MSG

AF_INET, AF_BRIDGE, AF_INET6 = 2, 7, 10
RTM_NEWLINK, RTM_DELLINK, RTM_GETLINK, RTM_SETLINK, RTM_NEWLINKPROP = 16, 17, 18, 19, 108
RTM_NEWADDR, RTM_GETADDR, RTM_NEWROUTE, RTM_DELROUTE, RTM_GETROUTE = 20, 22, 24, 25, 26
RTM_NEWNEIGH, RTM_DELNEIGH, RTM_GETNEIGH, RTM_SETNEIGHTBL = 28, 29, 30, 67
RTM_NEWQDISC, RTM_GETQDISC, RTM_NEWTCLASS, RTM_GETTCLASS, RTM_NEWTFILTER = 36, 38, 40, 42, 44
RTM_NEWNSID, RTM_GETNSID = 88, 90

IFF_UP = 0x1
IFLA_ADDRESS, IFLA_IFNAME, IFLA_MTU, IFLA_LINK, IFLA_MASTER, IFLA_PROTINFO = 1, 3, 4, 5, 10, 12
IFLA_LINKINFO, IFLA_IFALIAS, IFLA_AF_SPEC, IFLA_NET_NS_FD = 18, 20, 26, 28
IFLA_LINK_NETNSID, IFLA_TARGET_NETNSID = 37, 46
IFLA_INFO_KIND, IFLA_INFO_DATA = 1, 2
IFA_ADDRESS, IFA_LOCAL, IFA_BROADCAST = 1, 2, 4
RTA_DST, RTA_OIF, RTA_GATEWAY, RTA_PRIORITY, RTA_MULTIPATH, RTA_TABLE = 1, 4, 5, 6, 9, 15
RT_TABLE_MAIN, RT_TABLE_LOCAL, RTPROT_BOOT, RTN_UNICAST = 254, 255, 3, 1
RT_SCOPE_LINK, RT_SCOPE_NOWHERE = 253, 255
NDA_DST, NDA_LLADDR, NDA_IFINDEX = 1, 2, 8
NTF_SELF, NTF_MASTER, NTF_STICKY = 0x02, 0x04, 0x40
NUD_INCOMPLETE, NUD_REACHABLE, NUD_STALE, NUD_PROBE = 0x01, 0x02, 0x04, 0x10
NUD_FAILED, NUD_NOARP, NUD_PERMANENT = 0x20, 0x40, 0x80
TCA_KIND, TCA_OPTIONS, TCA_STATS2 = 1, 2, 7
TC_H_ROOT, TC_H_INGRESS = 0xFFFFFFFF, 0xFFFFFFF1

# Bytes of a message's fixed part, which attributes follow.
IFINFOMSG, IFADDRMSG, RTMSG, NDMSG, TCMSG = 16, 8, 12, 12, 20


def opened(protocol: int = ROUTE, groups: int = 0) -> socket:
    """A socket to a part of the kernel, of this network namespace, which tells errors in words.

    With groups it hears what the kernel tells these.
    """
    kernel = sockets.socket(sockets.AF_NETLINK, sockets.SOCK_RAW | os.O_CLOEXEC, protocol)
    for option in (_CAP_ACK, _EXT_ACK):  # Linux 4.3 and 4.12
        try:
            kernel.setsockopt(SOL_NETLINK, option, 1)
        except OSError:
            break
    if groups:
        kernel.bind((0, groups))
    return kernel


def by_device() -> socket:
    """A socket for what is asked of devices by ioctl(2) (netdevice(7))."""
    return sockets.socket(AF_INET, sockets.SOCK_DGRAM)


def ifinfomsg(index: int = 0, flags: int = 0, change: int = 0, family: int = 0) -> bytes:
    """Which link is meant; `change` says which of its flags are to be as `flags` has them."""
    return pack("=BxHiII", family, 0, index, flags, change)


def ndmsg(family: int, index: int = 0, state: int = 0, flags: int = 0) -> bytes:
    """A neighbour's, or a forwarding entry's, device and state."""
    return pack("=BxxxiHBB", family, index, state, flags, 0)


def rtmsg(
    bits: int = 0, table: int = 0, protocol: int = 0, kind: int = 0, flags: int = 0, scope: int = 0
) -> bytes:
    """A route of IPv4, to a network with so many first bits."""
    return pack("=BBBBBBBBI", AF_INET, bits, 0, 0, table, protocol, scope, kind, flags)


def tcmsg(index: int = 0, handle: int = 0, parent: int = 0, info: int = 0) -> bytes:
    """Which qdisc, class or filter of a link is meant."""
    return pack("=BxxxiIII", 0, index, handle, parent, info)


def attribute(kind: int, value: bytes) -> bytes:
    """One attribute of a message, padded."""
    return pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def nested(kind: int, content: bytes) -> bytes:
    """An attribute that holds others."""
    return attribute(kind | NESTED, content)


def named(kind: int, name: str) -> bytes:
    """An attribute that is a string."""
    return attribute(kind, name.encode() + b"\0")


def u32(kind: int, value: int) -> bytes:
    """An attribute that is a number."""
    return attribute(kind, pack("=I", value))


def attributes(content: bytes, start: int = 0) -> Attributes:
    """The attributes of a message, or of one that holds others. Raises ValueError if they are not whole."""
    if start > len(content):
        raise ValueError("a message is not whole")
    return dict(_parts(content, start))


def every(content: bytes) -> list[bytes]:
    """What stands in a list, whose attributes are all of one kind."""
    return [part for _, part in _parts(content, 0)]


def text(value: bytes) -> str:
    """A string, as an attribute has it."""
    return value.rstrip(b"\0").decode(errors="replace")


def message(kind: int, flags: int, body: bytes, sequence: int = 1) -> bytes:
    """A whole message, padded."""
    head = pack("=IHHII", 16 + len(body), kind, flags | REQUEST, sequence, 0)
    return head + body + bytes(-len(body) % 4)


def messages(datagram: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """Kind, flags, sequence and body of each message of a datagram, up to the first that is not whole."""
    at = 0
    while at + 16 <= len(datagram):
        length, kind, flags, sequence = unpack_from("=IHHI", datagram, at)
        if length < 16 or at + length > len(datagram):
            return
        yield kind, flags, sequence, datagram[at + 16 : at + length]
        at += length + 3 & ~3


def ask(
    kind: int,
    flags: int,
    body: bytes,
    kernel: socket | None = None,
    protocol: int = ROUTE,
    sequence: int = 1,
) -> Iterator[bytes]:
    """Send one message and yield the bodies of the answers. Raises OSError with the kernel's number.

    It goes through a socket that is kept, for who has many questions, or through one of its own. Who may
    leave an answer unread gives each question on a socket a sequence number of its own.
    """
    used = kernel or opened(protocol)
    try:
        used.send(message(kind, flags, body, sequence))
        yield from _answers(used, sequence, bool(flags & (DUMP | ACK)))
    finally:
        if kernel is None:
            used.close()


def tell(kind: int, flags: int, body: bytes, kernel: socket | None = None, sequence: int = 1) -> None:
    """Let something be done, and wait until it is. Raises OSError."""
    for _ in ask(kind, flags | ACK, body, kernel, sequence=sequence):
        pass


def tell_all(parts: Iterable[tuple[int, int, bytes]], protocol: int) -> None:
    """Let several things be done, each a kind, flags and a body, of which one wants ACK. Raises OSError."""
    kernel = opened(protocol)
    try:
        kernel.send(b"".join(message(*part) for part in parts))
        for _ in _answers(kernel, 1, True):
            pass
    finally:
        kernel.close()


class Ignoring:
    """`with Ignoring(ENODEV):` - an answer of the kernel's with one of these numbers is no error."""

    def __init__(self, *numbers: int) -> None:
        self._numbers = numbers

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: object, __: object) -> bool:
        return isinstance(error, OSError) and error.errno in self._numbers


def _answers(kernel: socket, sequence: int, several: bool) -> Iterator[bytes]:
    while True:
        for kind, flags, number, body in messages(kernel.recv(_LARGEST_ANSWER)):
            if number != sequence:
                continue  # the rest of an answer that nobody waited for
            if kind == ERROR:
                _require(flags, body)
            if kind in (ERROR, DONE):
                return
            yield body
            if not several:
                return


def _require(flags: int, content: bytes) -> None:
    """Raise the OSError that an answer of kind ERROR tells, if it tells one: in the kernel's words."""
    (number,) = unpack_from("=i", content)
    if number:
        said = b""
        if flags & _WITH_TEXT:
            (length,) = unpack_from("=I", content, 4)
            start = 20 if flags & _CAPPED else 4 + (length + 3 & ~3)
            said = attributes(content, start).get(_TEXT, b"")
        raise OSError(-number, text(said) or os.strerror(-number))


def _parts(content: bytes, start: int) -> list[tuple[int, bytes]]:
    found, end = [], len(content)
    while start < end:
        length, kind = _HEAD(content, start) if start + 4 <= end else (0, 0)
        if length < 4 or start + length > end:
            raise ValueError("an attribute is not whole")
        found.append((kind & _KIND, content[start + 4 : start + length]))
        start += length + 3 & ~3
    return found
