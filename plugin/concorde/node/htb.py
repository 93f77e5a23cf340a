"""The tree on the uplink, as `tc -batch` text. Only rendering and sums.

    c0de:         HTB, default class fffe
    c0de:1        the capacity; rate = ceil
    |- c0de:10 .. a class for each guarantee; rate = what it takes here, ceil = the pod's or the capacity
    |- c0de:fffd  the node's own control traffic; rate = the reserve
    `- c0de:fffe  everything else; rate = what is not promised

All classes have the same prio: HTB offers what is idle to the lowest prio number first, and all of it
(net/sched/sch_htb.c, htb_dequeue_tree), so any order would let one side starve the other of the excess.
They have the same quantum too: a promise is a floor, not a weight, so those who want more share what is idle
alike. One largest offloaded packet is a turn; with less, a class would need several turns for one packet.

All classes count what a frame takes of the wire (records.Tree), so that who sends small ones takes nothing of
others' promises. HTB adds `overhead` to each packet, and takes `mpu` for what is smaller then
(include/net/sch_generic.h, psched_l2t_ns). `stab` of the root would forget all headers of an offloaded packet
but the first (net/sched/sch_api.c, __qdisc_calculate_pkt_len).
"""

from __future__ import annotations

from .. import shaping
from ..shaping import LARGEST_PACKET, QUANTUM, longest_burst

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .records import Entry, Tree

MAJOR = "c0de:"
ROOT, CONTROL, DEFAULT = 0x1, 0xFFFD, 0xFFFE
# Pods' minors. Each class's queue has the class's minor as its handle; from 8000: up the kernel numbers
# queues that were given none.
FIRST_MINOR, LAST_MINOR = 0x10, 0x7FFF

LEAST_RATE = 8_000  # bits per second; less would be too slow for a burst of one packet to be counted
_BURST_MILLISECONDS = 1
# A busy node's timers are late by more than that. What a guarantee could not use meanwhile it must be able to
# make up for, or others, who borrow, get it. The burst of the whole, and of those who borrow, stays short.
_GUARANTEE_BURST_MILLISECONDS = 3
# Of the guarantee. Longer than a data centre's round trip, so that TCP keeps it filled. Not longer, because
# what is lost when it overflows, as at every flow's beginning, holds up all behind it for as long again.
_QUEUE_MILLISECONDS = 10
_LEAST_QUEUE_PACKETS = 8  # as large as they may be: TCP needs some under way to notice the loss of one
# Who has no promise waits in the default class behind everybody else's bulk, so its queue is as short as it
# can be without a loss of throughput (docs/explanation/diary.md). It is of the capacity, as the rest may
# have all of it; and its flows are several, so that not each needs room for packets of its own.
_DEFAULT_QUEUE_MILLISECONDS = 2
_LEAST_DEFAULT_QUEUE_PACKETS = 2
# Packets cost a processor alike whatever their size, and a node of small guarantees has many: 250 pods of
# 3.6 Mbit/s, in packets of two frames, kept two processors from what they were promised (benchmarks/node.py).
_LEAST_LARGEST_PACKET = 12_000


def handle(minor: int) -> str:
    """A class's name: `c0de:10`."""
    return f"{MAJOR}{minor:x}"


def default_rate(tree: Tree, promised: int) -> int:
    """What is left for everything else (bits per second of the wire), given the sum of what is promised."""
    return max(LEAST_RATE, tree.usable - tree.reserve - tree.on_wire(promised))


def rates(tree: Tree, minor: int, promised: int, entry: Entry | None = None) -> tuple[int, int]:
    """Rate and ceil (bits per second of the wire) a class must have."""
    if entry is not None:
        rate = tree.on_wire(entry.rate)
        return rate, max(rate, min(tree.on_wire(entry.ceil), tree.usable))
    if minor == ROOT:
        return tree.usable, tree.usable
    if minor == CONTROL:
        return max(LEAST_RATE, tree.reserve), tree.usable
    return default_rate(tree, promised), tree.usable


def largest_packet(rate: int) -> int:
    """The most an offloaded packet of a guarantee may hold (bytes), given its rate (bits per second)."""
    return max(_LEAST_LARGEST_PACKET, shaping.largest_packet(rate))


def queue(tree: Tree, entry: Entry | None) -> int:
    """The size (bytes) of a class's queue.

    Explicit, because a class's own queue would take the device's txqueuelen: 1,000 packets, which are 64 MB
    when they are offloaded ones.
    """
    if entry is None:
        least = _LEAST_DEFAULT_QUEUE_PACKETS * LARGEST_PACKET
        return max(least, tree.capacity // 8 * _DEFAULT_QUEUE_MILLISECONDS // 1000)
    least = _LEAST_QUEUE_PACKETS * largest_packet(entry.rate)
    return max(least, entry.rate // 8 * _QUEUE_MILLISECONDS // 1000)


def burst(rate: int, milliseconds: int = _BURST_MILLISECONDS) -> int:
    """How many bytes a class may send at once at a rate (bits per second): at least one offloaded packet."""
    return min(max(LARGEST_PACKET, rate // 8 * milliseconds // 1000), longest_burst(rate))


def class_line(verb: str, tree: Tree, minor: int, rate: int, ceil: int) -> str:
    """`add` or `change` a class: rate and ceil in bits per second of the wire."""
    parent = MAJOR if minor == ROOT else handle(ROOT)
    guaranteed = FIRST_MINOR <= minor <= LAST_MINOR
    at_once = burst(rate, _GUARANTEE_BURST_MILLISECONDS) if guaranteed else burst(rate)
    return (
        f"class {verb} dev {tree.uplink} parent {parent} classid {handle(minor)} htb prio 0"
        f" rate {rate}bit ceil {ceil}bit burst {at_once}b cburst {burst(ceil)}b quantum {QUANTUM}"
        f" overhead {tree.overhead} mpu {tree.least}\n"
    )


def queue_line(tree: Tree, minor: int, entry: Entry | None) -> str:
    """Give a class its queue, or the queue its size."""
    return (
        f"qdisc replace dev {tree.uplink} parent {handle(minor)} handle {minor:x}:"
        f" bfifo limit {queue(tree, entry)}\n"
    )


def add_class(tree: Tree, minor: int, promised: int, entry: Entry | None = None) -> str:
    """A class with its queue."""
    return class_line("add", tree, minor, *rates(tree, minor, promised, entry)) + queue_line(
        tree, minor, entry
    )


def change_default(tree: Tree, rate: int) -> str:
    """Set what everything else is sure of (bits per second of the wire)."""
    return class_line("change", tree, DEFAULT, rate, tree.usable)


def delete_class(tree: Tree, minor: int) -> str:
    """A class and its queue."""
    return f"class delete dev {tree.uplink} classid {handle(minor)}\n"


def delete_root(tree: Tree) -> str:
    """Whatever is configured on the uplink; the kernel's default comes back."""
    return f"qdisc delete dev {tree.uplink} root\n"


def plant(tree: Tree, promised: int) -> str:
    """The tree without pods. Traffic passes by it for the few microseconds between the first lines."""
    return (
        f"qdisc add dev {tree.uplink} root handle {MAJOR} htb default {DEFAULT:x}\n"
        + class_line("add", tree, ROOT, tree.usable, tree.usable)
        + add_class(tree, DEFAULT, promised)
        + add_class(tree, CONTROL, promised)
        + arp_filter(tree)
    )


def arp_filter(tree: Tree) -> str:
    """ARP is control traffic: without it a node under load loses its neighbours. nftables never sees it."""
    return (
        f"filter add dev {tree.uplink} parent {MAJOR} protocol arp pref 1 u32 match u32 0 0"
        f" classid {handle(CONTROL)}\n"
    )
