"""Messages to the kernel and its answers, as netlink(7) lays them out, in the machine's own byte order.

What is asked is said in rtnetlink, host_interfaces, namespaces, routing, batches and node.nfnetlink.
"""

from __future__ import annotations

import os
from struct import pack, unpack_from

try:  # not socket, which loads selectors and enum
    from _socket import AF_INET, AF_NETLINK, SOCK_DGRAM, SOCK_RAW, socket
except ImportError:  # it is Python's own, and may go
    from socket import AF_INET, AF_NETLINK, SOCK_DGRAM, SOCK_RAW, socket  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Attributes = dict[int, bytes]

ROUTE, NETFILTER = 0, 12  # NETLINK_*
ERROR, _DONE = 2, 3  # NLMSG_*
REQUEST, ACK, ECHO, DUMP = 0x1, 0x4, 0x8, 0x300  # NLM_F_*
REPLACE, EXCLUSIVE, CREATE, APPEND = 0x100, 0x200, 0x400, 0x800
_CAPPED, _WITH_WORDS = 0x100, 0x200  # NLM_F_CAPPED, _ACK_TLVS: of an error
NESTED = 0x8000  # NLA_FNESTED
_LARGEST_ANSWER = 1 << 15  # net/netlink/af_netlink.c, netlink_recvmsg(): no part of a dump is larger
_OPTIONS, _CAP_ACK, _EXT_ACK = 270, 10, 11  # SOL_NETLINK, NETLINK_*
_WORDS = 1  # NLMSGERR_ATTR_MSG


def opened(protocol: int = ROUTE) -> socket:
    """A socket to a part of the kernel, of this network namespace, which tells errors in words."""
    kernel = socket(AF_NETLINK, SOCK_RAW | os.O_CLOEXEC, protocol)
    for option in (_CAP_ACK, _EXT_ACK):  # Linux 4.3 and 4.12
        try:
            kernel.setsockopt(_OPTIONS, option, 1)
        except OSError:
            break
    return kernel


def by_device() -> socket:
    """A socket for what is asked of devices by ioctl(2) (netdevice(7))."""
    return socket(AF_INET, SOCK_DGRAM)


def attribute(kind: int, value: bytes) -> bytes:
    """One attribute of a message, padded."""
    return pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def nested(kind: int, content: bytes) -> bytes:
    """An attribute that holds others."""
    return attribute(kind | NESTED, content)


def named(kind: int, name: str) -> bytes:
    """An attribute that is a string."""
    return attribute(kind, name.encode() + b"\0")


def attributes(content: bytes, start: int = 0) -> Attributes:
    """The attributes of a message, or of one that holds others."""
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


def ask(
    kind: int, flags: int, body: bytes, kernel: socket | None = None, protocol: int = ROUTE
) -> Iterator[bytes]:
    """Send one message and yield the bodies of the answers. Raises OSError with the kernel's number.

    It goes through a socket that is kept, for who has many questions, or through one of its own.
    """
    used = kernel or opened(protocol)
    try:
        yield from _answers(used, kind, flags, body)
    finally:
        if kernel is None:
            used.close()


def tell(kind: int, flags: int, body: bytes, kernel: socket | None = None) -> None:
    """Let something be done, and wait until it is. Raises OSError."""
    for _ in ask(kind, flags | ACK, body, kernel):
        pass


def _answers(kernel: socket, kind: int, flags: int, body: bytes) -> Iterator[bytes]:
    kernel.send(message(kind, flags, body))
    while True:
        answer, at = kernel.recv(_LARGEST_ANSWER), 0
        while at < len(answer):
            length, said, how = unpack_from("=IHH", answer, at)
            content = answer[at + 16 : at + length]
            if said == ERROR:
                require(how, content)
                return
            if said == _DONE:
                return
            yield content
            if not flags & (DUMP | ACK):
                return
            at += length + 3 & ~3


def require(flags: int, content: bytes) -> None:
    """Raise the OSError that an answer of kind ERROR tells, if it tells one: in the kernel's words."""
    (number,) = unpack_from("=i", content)
    if number:
        words = b""
        if flags & _WITH_WORDS:
            (length,) = unpack_from("=I", content, 4)
            start = 20 if flags & _CAPPED else 4 + (length + 3 & ~3)
            words = attributes(content, start).get(_WORDS, b"")
        raise OSError(-number, text(words) or os.strerror(-number))


def _parts(content: bytes, start: int) -> Iterator[tuple[int, bytes]]:
    while start + 4 <= len(content):
        length, kind = unpack_from("=HH", content, start)
        if length < 4:
            break
        yield kind & 0x3FFF, content[start + 4 : start + length]
        start += length + 3 & ~3
