"""The tree on the uplink, as `tc -batch` text. Only rendering and sums.

    c0de:            HTB, default class fffe
    c0de:1           the capacity; rate = ceil
    |- c0de:10 ..    a class for each guarantee; rate = what it takes here, ceil = the pod's or the capacity
    |- c0de:fffd     the node's own control traffic; rate = the reserve
    `- c0de:fffc     best effort; rate = what is not promised
       |- c0de:4010 .. what a pod sends without a promise, for each pod of the tree; rate = nearly nothing
       |- c0de:7000 .. of a fabric, all of that to one other node; ceil = what this one grants
       |- c0de:fffb  of a fabric, all of that to nodes that grant nothing; ceil = the safe rate
       `- c0de:fffe  the node, strangers and whoever else there is; rate = half of it

In a fabric a class for a guarantee starts with ceil = rate; what it may have besides is granted, too. What
goes to a node's own address, as an overlay's packets do, and has no mark is at the safe rate: the tables that
give marks are somebody's to delete.

All classes have the same prio: HTB offers what is idle to the lowest prio number first, and all of it
(net/sched/sch_htb.c, htb_dequeue_tree), so any order would let one side starve the other of the excess.
Who wants more takes turns, each of so many bytes as its quantum: promises in proportion to their rates, and
all of best effort alike, which is little beside them; but nobody takes from it what is not promised.

A turn must hold the largest packet. What a packet has more than that is remembered as a debt, and nobody pays
it: 31 bits of it are a credit of 2 GB, and who has it sends alone (htb_dequeue_tree, `deficit`). So where
turns are short, for best effort, a TBF that never waits cuts offloaded packets to the size of a turn
(net/sched/sch_tbf.c, tbf_segment).

A class's queue is a FIFO. Where the kernel has fq_codel, the flows in it take turns, so that one that floods
leaves the class's others their parts. Then it is within the TBF, if there is one.

All classes count what a frame takes of the wire (records.Tree), so that who sends small ones takes nothing of
others' promises. HTB adds `overhead` to each packet, and takes `mpu` for what is smaller then
(include/net/sch_generic.h, psched_l2t_ns). `stab` of the root would forget all headers of an offloaded packet
but the first (net/sched/sch_api.c, __qdisc_calculate_pkt_len).
"""

from __future__ import annotations

from .. import addresses, shaping
from ..shaping import ETHERNET_HEADER, LARGEST_PACKET, QUANTUM, longest_burst

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

    from .records import Entry, Tree

    # Kind, rate (bytes per second) if it is a token bucket, and size (bytes).
    Queue = tuple[str, int, int]
    # Of what has no mark: preference, what an address is compared with, and the class.
    Filter = tuple[int, int, int, str]

MAJOR = "c0de:"
ROOT, SAFE, BEST_EFFORT, CONTROL, DEFAULT = 0x1, 0xFFFB, 0xFFFC, 0xFFFD, 0xFFFE
# Pods' minors, and how far from a pod's its other class is. Each class's queue has the class's minor as its
# handle; from 8000: up the kernel numbers queues that were given none.
FIRST_MINOR, LAST_MINOR, _APART = 0x10, 0x2FFF, 0x4000
PEERS = range(0x7000, 0x8000)  # other nodes' minors

# Bits per second. As HTB gives it to each pod besides what it shares out, a thousand pods take 1 Mbit/s.
_RATE_OF_BEST_EFFORT = 1_000
LEAST_RATE = 8_000  # bits per second; less would be too slow for a burst of one packet to be counted
# Those with classes below them, which have the queues.
INNER = ROOT, BEST_EFFORT
# Of a promise: how long it sends alone, of what is idle. It is more than a largest packet from 10 Mbit/s up.
_TURN_MILLISECONDS = 50
# A jumbo frame, and more (bytes): what is larger than a turn and cannot be cut is dropped.
_LEAST_TURN = 9_216
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
_VLAN_TAG = 4  # IEEE 802.1Q
# Filters' preferences; where in a packet of IPv4 its destination stands (bytes).
_ARP, _TO_NODES = 1, 2
_DESTINATION = 16
# A token bucket that never waits: 1 Tbit/s (bytes per second).
_NO_LIMIT = 125_000_000_000

# A queue whose flows take turns. Its size is what packets take of memory, which is half as much again for a
# full frame, and several times as much for a small one.
FAIR = "fq_codel"
_MEMORY_OF_A_PACKET = 2
# 256 flows are 17 KB a queue (1,024, its own choice, 70), and a node has two queues a pod. Who comes when it
# is full takes the place of one packet of the longest flow; not of half of that flow, as by its own choice.
# What has a place keeps it: CoDel would drop what waits for long, which here the size prevents.
_FAIR_OPTIONS = " flows 256 drop_batch 1 target 1s"


def handle(minor: int) -> str:
    """A class's name: `c0de:10`."""
    return f"{MAJOR}{minor:x}"


def best_effort(minor: int) -> int:
    """The minor of a pod's class for what it sends without a promise, given the pod's."""
    return minor + _APART


def of_pod(minor: int) -> int:
    """The pod's minor, given that of either of its classes."""
    return minor - _APART if _is_of_pods(minor) else minor


def _is_of_pods(minor: int) -> bool:
    """Whether it is a pod's best effort."""
    return best_effort(FIRST_MINOR) <= minor <= best_effort(LAST_MINOR)


def is_best_effort(minor: int) -> bool:
    """Whether a class takes turns with all that is not promised."""
    return minor in (DEFAULT, SAFE) or minor in PEERS or _is_of_pods(minor)


def minors(entry: Entry) -> list[int]:
    """An attachment's classes: that of its promise, if there is one, and the other."""
    if entry.minor is None:
        return []
    return [*([entry.minor] if entry.rate else ()), best_effort(entry.minor)]


def default_rate(tree: Tree, promised: int) -> int:
    """What is left for everything else (bits per second of the wire), given the sum of what is promised."""
    return max(LEAST_RATE, tree.usable - tree.reserve - tree.on_wire(promised))


def rates(tree: Tree, minor: int, promised: int, entry: Entry | None = None) -> tuple[int, int]:
    """Rate and ceil (bits per second of the wire) a class must have; in a fabric, as it begins."""
    if _is_of_pods(minor):
        return _RATE_OF_BEST_EFFORT, tree.usable
    if tree.fabric is not None and (minor == SAFE or minor in PEERS):
        return _RATE_OF_BEST_EFFORT, tree.fabric.safe
    if entry is not None:
        rate = tree.on_wire(entry.rate)
        return rate, rate if tree.fabric else most(tree, entry)
    if minor == ROOT:
        return tree.usable, tree.usable
    if minor == CONTROL:
        return max(LEAST_RATE, tree.reserve), tree.usable
    return _rest(default_rate(tree, promised))[minor], tree.usable


def most(tree: Tree, entry: Entry) -> int:
    """What the class of a guarantee may have at most (bits per second of the wire)."""
    return max(tree.on_wire(entry.rate), min(tree.on_wire(entry.ceil), tree.usable))


def granted(tree: Tree, minor: int, entry: Entry | None) -> tuple[int, int] | None:
    """Between what ceilings (bits per second of the wire) a class may be granted one; None: there is one."""
    if tree.fabric is None:
        return None
    if minor in PEERS:
        return LEAST_RATE, tree.usable
    if entry is not None and not _is_of_pods(minor):
        return tree.on_wire(entry.rate), most(tree, entry)
    return None


def special(tree: Tree) -> tuple[int, ...]:
    """The classes without pods that have no class below them, of which some begin with the tree."""
    return (DEFAULT, CONTROL, *((SAFE,) if tree.fabric else ()), *tree.peers.values())


def _rest(rate: int) -> dict[int, int]:
    """What the classes without a promise are sure of, given what is left for them (bits per second)."""
    return {BEST_EFFORT: rate, DEFAULT: max(LEAST_RATE, rate // 2)}


def turn(tree: Tree) -> int:
    """What a pod without a promise may send at once (bytes): the largest packet that leaves its class.

    A quarter of a millisecond of the link, so that the others wait no longer where little is left of it.
    """
    return max(_LEAST_TURN, min(LARGEST_PACKET, tree.capacity // 8 // 4000))


def _quantum(tree: Tree, minor: int, rate: int) -> int:
    if is_best_effort(minor):
        return turn(tree)
    if FIRST_MINOR <= minor <= LAST_MINOR:
        return max(QUANTUM, rate // 8 * _TURN_MILLISECONDS // 1000)
    return QUANTUM


def largest_packet(rate: int) -> int:
    """The most an offloaded packet of a guarantee may hold (bytes), given its rate (bits per second)."""
    return max(_LEAST_LARGEST_PACKET, shaping.largest_packet(rate))


def queue(tree: Tree, minor: int, entry: Entry | None) -> int:
    """The size (bytes) of a class's queue.

    Explicit, because a class's own queue would take the device's txqueuelen: 1,000 packets, which are 64 MB
    when they are offloaded ones.
    """
    if entry is None or _is_of_pods(minor):
        least = _LEAST_DEFAULT_QUEUE_PACKETS * LARGEST_PACKET
        return max(least, tree.capacity // 8 * _DEFAULT_QUEUE_MILLISECONDS // 1000)
    least = _LEAST_QUEUE_PACKETS * largest_packet(entry.rate)
    return max(least, entry.rate // 8 * _QUEUE_MILLISECONDS // 1000)


def queues(tree: Tree, minor: int, entry: Entry | None, fair: bool) -> dict[str, Queue]:
    """A class's queue by what it is below of, as tc writes that, and then the one within it if there is one.

    `fair` says whether the kernel has what lets flows take turns. A bucket smaller than an offloaded packet
    takes it apart at once (net/sched/sch_tbf.c, tbf_segment), so that HTB counts what it becomes. tc does not
    show such a small one: the rate says how large it is.
    """
    size = queue(tree, minor, entry)
    turns = FAIR, 0, size * _MEMORY_OF_A_PACKET
    largest = tree.segment or (turn(tree) if is_best_effort(minor) else 0)
    if not largest:
        return {handle(minor): turns if fair else ("bfifo", 0, size)}
    found: dict[str, Queue] = {handle(minor): ("tbf", _NO_LIMIT + largest, size)}
    if fair:
        found[f"{minor:x}:1"] = turns
    return found


def largest_frame(mtu: int) -> int:
    """The bytes of the largest frame on an uplink of an MTU (bytes)."""
    return mtu + ETHERNET_HEADER + _VLAN_TAG


def burst(rate: int, milliseconds: int = _BURST_MILLISECONDS) -> int:
    """How many bytes a class may send at once at a rate (bits per second): at least one offloaded packet."""
    return min(max(LARGEST_PACKET, rate // 8 * milliseconds // 1000), longest_burst(rate))


def parent(minor: int) -> str:
    """What a class is below of, as tc writes it."""
    if minor == ROOT:
        return MAJOR
    return handle(BEST_EFFORT if is_best_effort(minor) else ROOT)


def turns(tree: Tree, minor: int, rate: int, ceil: int) -> tuple[int, int, int]:
    """A class's quantum, burst and cburst (bytes), by rate and ceil (bits per second of the wire)."""
    guaranteed = FIRST_MINOR <= minor <= LAST_MINOR
    at_once = burst(rate, _GUARANTEE_BURST_MILLISECONDS) if guaranteed else burst(rate)
    return _quantum(tree, minor, rate), at_once, burst(ceil)


def class_line(verb: str, tree: Tree, minor: int, rate: int, ceil: int) -> str:
    """`add` or `change` a class: rate and ceil in bits per second of the wire."""
    above = parent(minor)
    quantum, at_once, at_most = turns(tree, minor, rate, ceil)
    return (
        f"class {verb} dev {tree.uplink} parent {above} classid {handle(minor)} htb prio 0"
        f" rate {rate}bit ceil {ceil}bit burst {at_once}b cburst {at_most}b quantum {quantum}"
        f" overhead {tree.overhead} mpu {tree.least}\n"
    )


def queue_lines(tree: Tree, minor: int, entry: Entry | None, fair: bool, verb: str = "replace") -> str:
    """Give a class its queue; without what lets flows take turns, also the queue its size.

    To `change` it leaves what waits there. The number of flows cannot be changed.
    """
    lines = ""
    for above, (kind, rate, size) in queues(tree, minor, entry, fair).items():
        own = f" handle {minor:x}:" if above == handle(minor) else ""
        options = {
            FAIR: f" memory_limit {size}{_FAIR_OPTIONS if verb == 'replace' else ''}",
            "tbf": f" rate {rate * 8}bit burst {rate - _NO_LIMIT}b limit {size}",
        }.get(kind, f" limit {size}")
        lines += f"qdisc {verb} dev {tree.uplink} parent {above}{own} {kind}{options}\n"
    return lines


def delete_queue(tree: Tree, minor: int) -> str:
    """Take a class's queue away, with what waits there: none of another kind can take its place else."""
    return f"qdisc delete dev {tree.uplink} parent {handle(minor)}\n"


def add_class(tree: Tree, minor: int, promised: int, entry: Entry | None = None, fair: bool = False) -> str:
    """A class, with its queue if it is to have one; `fair` as in queues()."""
    line = class_line("add", tree, minor, *rates(tree, minor, promised, entry))
    return line if minor in INNER else line + queue_lines(tree, minor, entry, fair)


def change_class(tree: Tree, entry: Entry, fair: bool, new: bool) -> str:
    """Give the class of a guarantee other rates, and its queue another size; or add it, where it is new."""
    minor = entry.minor
    assert minor is not None
    if new:
        return add_class(tree, minor, 0, entry, fair)
    line = class_line("change", tree, minor, *rates(tree, minor, 0, entry))
    return line + queue_lines(tree, minor, entry, fair, "change")


def change_rest(tree: Tree, rate: int, minors: Container[int] = (BEST_EFFORT, DEFAULT)) -> str:
    """Set what everything without a promise is sure of (bits per second of the wire), in these classes."""
    return "".join(
        class_line("change", tree, minor, its, tree.usable)
        for minor, its in _rest(rate).items()
        if minor in minors
    )


def delete_class(tree: Tree, minor: int) -> str:
    """A class and its queue."""
    return f"class delete dev {tree.uplink} classid {handle(minor)}\n"


def delete_root(tree: Tree) -> str:
    """Whatever is configured on the uplink; the kernel's default comes back."""
    return f"qdisc delete dev {tree.uplink} root\n"


def plant(tree: Tree, promised: int, fair: bool) -> str:
    """The tree without pods. Traffic passes by it for the few microseconds between the first lines."""
    return (
        f"qdisc add dev {tree.uplink} root handle {MAJOR} htb default {DEFAULT:x}\n"
        + "".join(
            add_class(tree, minor, promised, fair=fair) for minor in (ROOT, BEST_EFFORT, *special(tree))
        )
        + "".join(add_filter(tree, one) for one in filters(tree))
    )


def filters(tree: Tree) -> dict[Filter, str]:
    """What decides about packets without a mark, and what each is for.

    ARP is control traffic: without it a node under load loses its neighbours. nftables never sees it.
    """
    found: dict[Filter, str] = {(_ARP, 0, 0, handle(CONTROL)): "ARP"}
    for text in tree.fabric.nodes if tree.fabric else ():
        nodes = addresses.parse_subnet(text)
        found[_TO_NODES, nodes.network, nodes.mask, handle(SAFE)] = f"what goes to {text}"
    return found


def add_filter(tree: Tree, one: Filter) -> str:
    """A filter of filters()."""
    preference, value, mask, classid = one
    protocol, at = ("arp", "") if preference == _ARP else ("ip", f" at {_DESTINATION}")
    return (
        f"filter add dev {tree.uplink} parent {MAJOR} protocol {protocol} pref {preference}"
        f" u32 match u32 {value:#x} {mask:#x}{at} classid {classid}\n"
    )


def is_to_nodes(one: Filter) -> bool:
    """Whether a filter's preference is of those for what goes to a fabric's nodes."""
    return one[0] == _TO_NODES


def delete_filters(tree: Tree) -> str:
    """All filters for what goes to a fabric's nodes."""
    return f"filter delete dev {tree.uplink} parent {MAJOR} protocol ip pref {_TO_NODES}\n"
