"""What the kernel has counted in the classes of an interface, asked directly: `tc -s class show` as numbers.

Asking takes no privilege. Source: linux/rtnetlink.h (struct tcmsg), linux/gen_stats.h; the same attributes as
iproute2 prints, tc/tc_util.c print_tcstats2_attr().
"""

from __future__ import annotations

from struct import unpack_from

from edge import netlink as nl

_BASIC, _QUEUE, _PACKETS = 1, 3, 8  # TCA_STATS_BASIC, _QUEUE, _PKT64 (Linux 5.5)


class Counters:
    """What one class has sent, dropped, and has waiting: bytes of layer 2, and packets."""

    def __init__(
        self, sent_bytes: int, sent_packets: int, dropped: int, backlog_bytes: int, backlog_packets: int
    ) -> None:
        self.sent_bytes = sent_bytes
        self.sent_packets = sent_packets
        self.dropped = dropped
        self.backlog_bytes = backlog_bytes
        self.backlog_packets = backlog_packets


def of_classes(index: int) -> dict[str, Counters]:
    """Each class of HTB of an interface, given by its number, by its name as tc writes that: `c0de:10`.

    None where there is no such interface. Raises OSError.
    """
    asked = nl.tcmsg(index)
    found = {}
    for message in nl.ask(nl.RTM_GETTCLASS, nl.DUMP, asked):
        (handle,) = unpack_from("=I", message, 8)
        attributes = nl.attributes(message, nl.TCMSG)
        if attributes[nl.TCA_KIND] == b"htb\0":  # a TBF shows a class too, which counts nothing
            found[_text(handle)] = _counters(attributes)
    # HTB's own count lacks what a class's queue takes to make room for others, as fq_codel does.
    for message in nl.ask(nl.RTM_GETQDISC, nl.DUMP, asked):
        its, _, parent = unpack_from("=iII", message, 4)
        if its == index and _text(parent) in found:
            own = found[_text(parent)]
            own.dropped = max(own.dropped, _counters(nl.attributes(message, nl.TCMSG)).dropped)
    return found


def _text(handle: int) -> str:
    return f"{handle >> 16:x}:{handle & 0xFFFF:x}"


def _counters(attributes: nl.Attributes) -> Counters:
    stats = nl.attributes(attributes[nl.TCA_STATS2])
    sent, packets = unpack_from("=QI", stats[_BASIC])
    if _PACKETS in stats:
        (packets,) = unpack_from("=Q", stats[_PACKETS])
    waiting, backlog, dropped = unpack_from("=III", stats[_QUEUE])
    return Counters(sent, packets, dropped, backlog, waiting)
