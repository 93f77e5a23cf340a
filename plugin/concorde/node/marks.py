"""Which packet belongs to which class. Only nft's sets, chains and elements.

The tables give a pod's packets their class: by source address, and only if they came in by the pod's own way,
so a container elsewhere on the node that borrows the address gets nothing. They look at them when they are
routed towards the overlay's device, where the source is still the pod's; the kernel keeps the mark
(skb->priority) through encapsulation, and HTB takes a mark with its own major number for the class. The
encapsulated packet passes once more, with the node's source, and keeps its mark. Before source NAT
(priority 100), so pods behind NAT are seen too.

What a pod's kernel says on its behalf, to anybody who asks, has at most a hundredth of its promise, half of
it for acknowledgements, which have besides what was promised to them. What is more is best effort, and never
dropped here. A pod with a promise for these alone has it for nothing else but to open connections.

What a process of the node sends keeps no mark of its own (SO_PRIORITY). It came in by no device, or, in IPv6,
by the one it leaves by (net/ipv4/ip_output.c, ip_output; net/ipv6/ip6_output.c, ip6_xmit); an encapsulated
packet by the tunnel's. Its socket tells less: that of a connection which was closed with data in it has no
owner any more (net/netfilter/nft_meta.c, nft_meta_get_eval_skugid).
"""

from __future__ import annotations

from .. import addresses
from . import limits
from .htb import CONTROL, best_effort, handle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .limits import Element, Rule
    from .records import Entry, Tree

# Of its promise, what a kernel may take that speaks for a pod, twice: half a hundredth, if it is said in the
# smallest messages, which have 28 bytes where this is counted and 116 as a frame of VXLAN on Ethernet.
_SPOKEN_PER_MILLE = 1
# Of what is promised to acknowledgements: as many of the smallest as fill it, which have 40 bytes here and
# 128 on the wire: with Ethernet's header and overhead, and VXLAN's headers (records.VXLAN_HEADERS).
_ANSWERS_PER_MILLE = 312
# The kernel lets through as much at once as in a second, and this (net/netfilter/nft_limit.c,
# nft_limit_init): of a small promise, two packets as large as they may be (bytes).
_AT_ONCE = 3_000

SETS = {
    ("ip", "ways"): ("set", "type ifname . ipv4_addr"),
    ("ip", "promises"): ("map", "type ifname . ipv4_addr : classid"),
    ("ip", "answers"): ("map", "type ifname . ipv4_addr : classid"),
    ("ip", "efforts"): ("map", "type ifname . ipv4_addr : classid"),
    ("ip6", "efforts"): ("map", "type ifname . ipv6_addr : classid"),
    # Each element has a limit of its own.
    ("ip", "spoken"): ("set", f"type ifname . ipv4_addr;{limits.over(1000, 1000)}"),
    ("ip", "acknowledged"): ("set", f"type ifname . ipv4_addr;{limits.over(1000, 1000)}"),
}
_POSTROUTING = "type filter hook postrouting priority 50"
# What has its mark, for it is on its way to the uplink; or is on its way to a pod, and needs none.
_OUT_OF_AN_OVERLAY = 'meta iifkind "vxlan" return', "encapsulated, or no longer"
_NODE = "meta iif 0 meta priority set none", "the node itself"
_PROMISE = "meta priority set iifname . ip saddr map @promises accept", "pods with a guarantee"
_ANSWER = "meta priority set iifname . ip saddr map @answers accept"
_EFFORT = "meta priority set iifname . ip saddr map @efforts"
_EFFORTS = f"{_EFFORT} accept", "pods without"
_EFFORTS6 = "meta priority set iifname . ip6 saddr map @efforts accept", "pods"
# What anybody may make a pod's kernel say: echo replies in any number of fragments and whatever else is ICMP,
# resets, answers to who asks for connections, and acknowledgements, be it of what was sent long ago.
_TOO_MUCH = f"iifname . ip saddr @spoken {_EFFORT} accept"
_TOO_MANY = f"iifname . ip saddr @acknowledged {_EFFORT} accept"
# Without data TCP has at most 40 bytes of options, and IP as many. Where data ends it is pushed, be it short.
_WITHOUT_DATA = "tcp flags & (syn | rst | psh) == 0"
_ACCEPTING = "tcp flags & (syn | ack) == (syn | ack)"
_SMALL = [
    (f"tcp flags & rst == rst {_TOO_MUCH}", "too many resets"),
    (f"{_ACCEPTING} {_TOO_MUCH}", "too many connections answered"),
    (f"{_WITHOUT_DATA} meta length < 81 {_TOO_MANY}", "too many acknowledgements"),
    (f"{_WITHOUT_DATA} ip hdrlength > 5 {_TOO_MANY}", "too many, with options"),
    (f"{_WITHOUT_DATA} meta length < 81 {_ANSWER}", "acknowledgements that alone have a guarantee"),
    (f"{_ACCEPTING} {_ANSWER}", "and what opens their connections"),
]
_SPOKEN = [
    ("meta l4proto tcp meta length < 121 jump small", "what may be without data"),
    (f"meta l4proto icmp {_TOO_MUCH}", "too much ICMP"),
]


def chains(trees: Sequence[Tree]) -> dict[tuple[str, str], tuple[str, list[Rule]]]:
    """The chains that give marks and take them; without a tree nobody would heed them."""
    found = {("ip", "small"): ("", _SMALL)}
    if not trees:
        return found
    back = [
        (f'iifname "{tree.uplink}" meta priority set none', "the node itself, or back to where it is from")
        for tree in trees
    ]
    control = _control_ports(sorted({port for tree in trees for port in tree.ports}))
    into = "iifname @vteps oifname @vteps meta priority set none", "the node itself, into an overlay"
    # No packet of a pod is the node's, so theirs, which are the most, come first.
    found["ip", "postrouting"] = (
        _POSTROUTING,
        [_OUT_OF_AN_OVERLAY, *_SPOKEN, _PROMISE, _EFFORTS, _NODE, *control],
    )
    found["ip6", "postrouting"] = _POSTROUTING, [_EFFORTS6, _NODE, *back, into, *control]
    return found


def _control_ports(ports: Sequence[int]) -> list[Rule]:
    if not ports:
        return []
    listed = ", ".join(map(str, ports))
    return [
        (
            f"meta skuid >= 0 tcp {word} {{ {listed} }} meta priority set {handle(CONTROL)}",
            f"control traffic {direction} these ports",
        )
        for word, direction in (("sport", "from"), ("dport", "to"))
    ]


def elements(entry: Entry) -> list[Element]:
    """An attachment's elements."""
    if not entry.host_interface:
        return []
    end = f'"{entry.host_interface}"'
    found = [("ip", "ways", f"{end} . {address}") for address in entry.ipv4]
    if entry.minor is None:
        return found
    for family, its in (("ip", entry.ipv4), ("ip6", entry.ipv6)):
        for address in its:
            found.append((family, "efforts", f"{end} . {address} : {handle(best_effort(entry.minor))}"))
    if entry.rate and entry.address is not None:
        who = f"{end} . {addresses.dotted(entry.address)}"
        of = "promises" if entry.guarantee else "answers"
        found.append(("ip", of, f"{who} : {handle(entry.minor)}"))
        found.append(("ip", "spoken", who + _limit(entry.rate)))
        found.append(("ip", "acknowledged", who + _limit(entry.rate, entry.answers or 0)))
    return found


def _limit(rate: int, answers: int = 0) -> str:
    """The limit of who speaks for a pod with promises of this rate, and with answers (bits per second)."""
    thousands = rate // 8 * _SPOKEN_PER_MILLE + answers // 8 * _ANSWERS_PER_MILLE
    return limits.over(max(1, thousands // 1000), _AT_ONCE)
