"""What every device, qdisc and class of a network namespace has passed, read by netlink again and again.

Run as a program by its path, in the namespace, with its wishes as JSON in its argument:
``{"interval": S}``, seconds between two readings; ``"links": [NAME, ...]``, the devices looked at, all
without it; ``"queues": false``, when qdiscs and classes are not wanted. It reads until it is ended.

Each reading is a line on its standard output, as bench.recording.queues has them: an array of when it was
made (seconds, CLOCK_MONOTONIC) and an array for each counter that has changed since the line before. A device
is there too, with ``link`` for a kind, what it sent for bytes and packets, and no handle.

Source: rtnetlink(7), netlink(7); linux/rtnetlink.h, linux/if_link.h, linux/gen_stats.h, linux/pkt_sched.h.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Attributes = dict[int, bytes]
    # Device, kind, handle, parent, bytes, packets, drops, bytes and packets that wait.
    Counter = tuple[str, str, str, str, int, int, int, int, int]


_REQUEST, _DUMP = 0x1, 0x300  # NLM_F_*
_ERROR, _DONE = 2, 3  # NLMSG_*
GET_LINK, GET_QDISC, GET_CLASS, GET_STATS = 18, 38, 42, 94  # RTM_*
_HEADER = Struct("=IHHII")  # struct nlmsghdr
_ATTRIBUTE = Struct("=HH")  # struct nlattr
_LINK = Struct("=BxHiII")  # struct ifinfomsg
_STATS = Struct("=BxxxII")  # struct if_stats_msg
_TRAFFIC = Struct("=BxxxiIII")  # struct tcmsg
_LINK_NAME = 3  # IFLA_IFNAME
_LINK_64 = 1  # IFLA_STATS_LINK_64
_KIND, _STATS2 = 1, 7  # TCA_*
_BASIC, _QUEUE, _PACKETS_64 = 1, 3, 8  # TCA_STATS_*
# struct rtnl_link_stats64, as far as it is wanted: packets, then bytes, received and sent; errors; dropped.
_SENT = Struct("=8Q")
_BYTES_AND_PACKETS = Struct("=QI")  # struct gnet_stats_basic
_WAITING = Struct("=III")  # struct gnet_stats_queue: packets, bytes, drops
_MASK = 0x3FFF  # NLA_TYPE_MASK
_ROOT = 0xFFFFFFFF  # TC_H_ROOT

# Qdiscs whose classes count for themselves; others' are qdiscs too, or flows without a name.
CLASSFUL = ("htb", "hfsc", "drr", "qfq")
NO_QUEUE = "noqueue"
_READ_BYTES = 1 << 17


def messages(datagram: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield kind and body of each message of a datagram."""
    at = 0
    while at + _HEADER.size <= len(datagram):
        length, kind = _HEADER.unpack_from(datagram, at)[:2]
        if length < _HEADER.size:
            return
        yield kind, datagram[at + _HEADER.size : at + length]
        at += length + 3 & ~3


def attributes(body: bytes, start: int = 0) -> Attributes:
    """Return the attributes of a message, or within one, by their numbers."""
    found = {}
    while start + _ATTRIBUTE.size <= len(body):
        length, kind = _ATTRIBUTE.unpack_from(body, start)
        if length < _ATTRIBUTE.size:
            break
        found[kind & _MASK] = body[start + _ATTRIBUTE.size : start + length]
        start += length + 3 & ~3
    return found


def handle(number: int) -> str:
    """Return a handle as tc writes it: 8001: of a qdisc, c0de:11 of a class."""
    if number == _ROOT:
        return "root"
    return f"{number >> 16:x}:{number & 0xFFFF:x}" if number & 0xFFFF else f"{number >> 16:x}:"


def link(body: bytes) -> tuple[int, str]:
    """Return index and name of a device."""
    index = _LINK.unpack_from(body)[2]
    return index, attributes(body, _LINK.size)[_LINK_NAME].rstrip(b"\0").decode()


def sent(body: bytes, names: dict[int, str]) -> Counter | None:
    """Return what a device has sent; None if it is none of those with names."""
    name = names.get(_STATS.unpack_from(body)[1])
    found = attributes(body, _STATS.size).get(_LINK_64)
    if name is None or found is None:
        return None
    _, packets, _, octets, _, _, _, dropped = _SENT.unpack_from(found)
    return name, "link", "", "", octets, packets, dropped, 0, 0


def queue(body: bytes, names: dict[int, str]) -> Counter | None:
    """Return what a qdisc or class counts; None if it is on none of the devices with names."""
    _, index, own, parent, _ = _TRAFFIC.unpack_from(body)
    found = attributes(body, _TRAFFIC.size)
    kind = found[_KIND].rstrip(b"\0").decode()
    if index not in names or kind == NO_QUEUE:
        return None
    stats = attributes(found.get(_STATS2, b""))
    octets, packets = _BYTES_AND_PACKETS.unpack_from(stats.get(_BASIC, bytes(12)))
    if _PACKETS_64 in stats:  # the other has 32 bits of it
        packets = int.from_bytes(stats[_PACKETS_64], sys.byteorder)
    length, backlog, drops = _WAITING.unpack_from(stats.get(_QUEUE, bytes(12)))
    return names[index], kind, handle(own), handle(parent), octets, packets, drops, backlog, length


class Kernel:
    """Asks the kernel of this network namespace."""

    def __init__(self) -> None:
        self._asked = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
        self._asked.bind((0, 0))

    def links(self) -> dict[int, str]:
        """Return all devices' names by their indices."""
        return dict(link(body) for body in self._dump(GET_LINK, _LINK.pack(0, 0, 0, 0, 0)))

    def counters(self, names: dict[int, str], queues: bool) -> Iterator[Counter]:
        """Yield what the devices with names count now, and their qdiscs and classes if these are wanted."""
        for body in self._dump(GET_STATS, _STATS.pack(0, 0, 1 << (_LINK_64 - 1))):
            counted = sent(body, names)
            if counted is not None:
                yield counted
        if not queues:
            return
        classful = {}
        for body in self._dump(GET_QDISC, _TRAFFIC.pack(0, 0, 0, 0, 0)):
            counted = queue(body, names)
            if counted is not None:
                yield counted
                if counted[1] in CLASSFUL:
                    classful[_TRAFFIC.unpack_from(body)[1]] = counted[1]
        for index, kind in classful.items():
            for body in self._dump(GET_CLASS, _TRAFFIC.pack(0, index, 0, 0, 0)):
                counted = queue(body, names)
                if counted is not None and counted[1] == kind:
                    yield counted

    def _dump(self, kind: int, body: bytes) -> Iterator[bytes]:
        """Yield the bodies of all answers. Raises OSError with the kernel's number."""
        self._asked.send(_HEADER.pack(_HEADER.size + len(body), kind, _REQUEST | _DUMP, 1, 0) + body)
        while True:
            for said, content in messages(self._asked.recv(_READ_BYTES)):
                if said == _DONE:
                    return
                if said == _ERROR:
                    number = int.from_bytes(content[:4], sys.byteorder, signed=True)
                    raise OSError(-number, os.strerror(-number))
                yield content


def changed(counted: list[Counter], known: dict[tuple[str, ...], Counter]) -> list[Counter]:
    """Return the counters that are not as they are known, and know them from now on."""
    found = [one for one in counted if known.get(one[:4]) != one]
    known.update((one[:4], one) for one in found)
    return found


def main() -> None:
    """Read, and say what has changed, until this process is ended."""
    wishes: dict[str, Any] = json.loads(sys.argv[1])
    kernel = Kernel()
    known: dict[tuple[str, ...], Counter] = {}
    interval, only, queues = wishes["interval"], wishes.get("links"), wishes.get("queues", True)
    due = time.monotonic()
    while True:
        # Devices come and go: a pod's is there from its ADD on.
        names = {index: name for index, name in kernel.links().items() if not only or name in only}
        begun = time.monotonic()
        counted = list(kernel.counters(names, queues))
        # What is read takes a moment, and stands for its middle.
        at = round((begun + time.monotonic()) / 2, 6)
        sys.stdout.write(json.dumps([at, *changed(counted, known)], separators=(",", ":")) + "\n")
        sys.stdout.flush()
        due = max(due + interval, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    main()
