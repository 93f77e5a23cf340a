"""What the agent's loop reads and sets in the kernel, many times a second: classes, and nftables' counters.

All by netlink: a class is read in some 15 us, and changed in 50, where a program takes milliseconds.
Source: linux/rtnetlink.h, linux/gen_stats.h; net/sched/sch_api.c, tc_ctl_tclass.
"""

from __future__ import annotations

from struct import unpack_from

from edge import netlink as nl

from .. import batches, rtnetlink
from ..node import htb, nfnetlink
from ..rtnetlink import NO_SUCH_THING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..node.records import Tree

_BASIC, _QUEUE = 1, 3  # TCA_STATS_*
_MAJOR = int(htb.MAJOR.rstrip(":"), 16) << 16
_AT_ONCE = 64  # questions before their answers are read, which must find room in the socket's buffer
_ANSWER = 1 << 13  # bytes; more room costs more time than the question


class Sample:
    """What a class has sent, and what waits there (bytes)."""

    def __init__(self, sent: int, waiting: int) -> None:
        self.sent = sent
        self.waiting = waiting


class Classes:
    """The classes of an uplink's tree."""

    def __init__(self, tree: Tree) -> None:
        """Raises OSError if there is no such link."""
        self._tree = tree
        self._index = rtnetlink.index_of(tree.uplink)
        self._kernel = nl.opened()
        self._changes = batches.Batch(nl.opened())
        self._sequence = 0

    def close(self) -> None:
        """End the conversation."""
        self._kernel.close()
        self._changes.close()

    def read(self, minors: Iterable[int]) -> dict[int, Sample]:
        """Those of these classes that are there. Raises OSError."""
        wanted, found = list(minors), {}
        for start in range(0, len(wanted), _AT_ONCE):
            part = wanted[start : start + _AT_ONCE]
            asked = b""
            for minor in part:
                self._sequence += 1
                body = nl.tcmsg(self._index, _MAJOR | minor)
                # Without the echo the kernel tells all listeners but who asks (tclass_notify).
                asked += nl.message(nl.RTM_GETTCLASS, nl.ECHO, body, self._sequence)
            self._kernel.send(asked)
            for _ in part:  # each has one answer, be it that there is no such class
                for kind, _, _, content in nl.messages(self._kernel.recv(_ANSWER)):
                    if kind == nl.RTM_NEWTCLASS:
                        minor, sample = _sample(content)
                        found[minor] = sample
        return found

    def set(self, minor: int, rate: int, ceil: int) -> None:
        """Set a class's rate and ceiling (bits per second of the wire). Raises OSError."""
        self._changes.tell(htb.class_line("change", self._tree, minor, rate, ceil).rstrip())


def _sample(content: bytes) -> tuple[int, Sample]:
    (handle,) = unpack_from("=8xI", content)
    said = nl.attributes(content, nl.TCMSG)
    counted = nl.attributes(said.get(nl.TCA_STATS2, b""))
    (sent,) = unpack_from("=Q", counted.get(_BASIC, bytes(8)))
    _, waiting = unpack_from("=II", counted.get(_QUEUE, bytes(8)))
    return handle & 0xFFFF, Sample(sent, waiting)


class Counters:
    """What the fabric's chains have counted, in bytes of IP, as differences since the last look."""

    def __init__(self) -> None:
        """Raises OSError."""
        self._kernel = nl.opened(nl.NETFILTER)
        self._last: dict[str, dict[bytes, int]] = {}

    def close(self) -> None:
        """End the conversation."""
        self._kernel.close()

    def look(self, name: str, *, glance: bool = False) -> dict[bytes, int]:
        """By each key of a set that has counted since the last look, how much more. Raises OSError.

        A glance is no look.
        """
        before = self._last.get(name, {})
        now = {}
        with nl.Ignoring(NO_SUCH_THING):
            now = dict(nfnetlink.bytes_counted(self._kernel, "ip", name))
        if not glance:
            self._last[name] = now
        more = {}
        for key, count in now.items():
            had = before.get(key, 0)
            if count != had:
                more[key] = count - had if count > had else count  # one that ended has begun anew
        return more


def node_and_class(key: bytes) -> tuple[int, int]:
    """A node's address and a minor, of a key of `peers.SENT`."""
    return node(key), unpack_from("=I", key, 4)[0] & 0xFFFF


def node(key: bytes) -> int:
    """A node's address, of a key that begins with it."""
    return int.from_bytes(key[:4], "big")
