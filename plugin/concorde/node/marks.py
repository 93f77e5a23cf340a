"""Which packet belongs to which class. Only nft's sets, chains and elements.

`table ip concorde` gives a pod's packets their class: by source address, and only if they came in by the
pod's own way, so a container elsewhere on the node that borrows the address gets nothing. It looks at them
when they are routed towards the overlay's device, where the source is still the pod's; the kernel keeps the
mark (skb->priority) through encapsulation, and HTB takes a mark with its own major number for the class. The
encapsulated packet passes once more, with the node's source, and keeps its mark. Before source NAT
(priority 100), so pods behind NAT are seen too.

What a pod's kernel says on its behalf, to anybody who asks, has at most a hundredth of its class.

What a process of the node sends keeps no mark of its own (SO_PRIORITY). It came in by no device, or, in IPv6,
by the one it leaves by (net/ipv4/ip_output.c, ip_output; net/ipv6/ip6_output.c, ip6_xmit); an encapsulated
packet by the tunnel's. Its socket tells less: that of a connection which was closed with data in it has no
owner any more (net/netfilter/nft_meta.c, nft_meta_get_eval_skugid).
"""

from __future__ import annotations

from .. import addresses
from . import limits
from .htb import CONTROL, handle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .parts import Element, Rule
    from .records import Entry, Tree

# Of its class, what a kernel may take that speaks for a pod: a hundredth, if it is said in the smallest
# messages, which have 28 bytes where this is counted and 92 as a frame of VXLAN.
_SPOKEN_PER_MILLE = 3
# The kernel lets through as much at once as in a second, and this (net/netfilter/nft_limit.c,
# nft_limit_init): of a small promise, two packets as large as they may be (bytes).
_AT_ONCE = 3_000

SETS = {
    ("ip", "classes"): ("map", "type ipv4_addr : classid"),
    ("ip", "ways"): ("set", "type ifname . ipv4_addr"),
    # Each element has a limit of its own.
    ("ip", "spoken"): ("set", "type ifname . ipv4_addr; limit rate over 1000 bytes/second burst 1000 bytes"),
}
_POSTROUTING = "type filter hook postrouting priority 50"
_NODE = "meta iif 0 meta priority set none return", "the node itself"
_PROCESSES = "meta skuid >= 0 meta priority set none return", "processes of the node"
# What anybody may make a pod's kernel say: echo replies in any number of fragments and whatever else is ICMP,
# resets, and answers to who asks for connections. What is too much is for the default class to carry.
_TOO_MUCH = "iifname . ip saddr @spoken meta priority set none return"
_SPOKEN = [
    (f"ip protocol icmp {_TOO_MUCH}", "too much ICMP"),
    (f"tcp flags & rst == rst {_TOO_MUCH}", "too many resets"),
    (f"tcp flags & (syn | ack) == (syn | ack) {_TOO_MUCH}", "too many connections answered"),
]
_PODS = "iifname . ip saddr @ways meta priority set ip saddr map @classes", "pods with a guarantee"


def chains(tree: Tree | None) -> dict[tuple[str, str], tuple[str, list[Rule]]]:
    """The chains that give marks and take them; without a tree nobody would heed them."""
    if tree is None:
        return {}
    node = [*_control_ports(tree), _NODE, _PROCESSES]
    back = (
        f'iifname "{tree.uplink}" meta priority set none return',
        "the node itself, or back to where it is from",
    )
    return {
        ("ip", "postrouting"): (_POSTROUTING, [*node, *_SPOKEN, _PODS]),
        ("ip6", "postrouting"): (_POSTROUTING, [*node, back]),
    }


def _control_ports(tree: Tree) -> list[Rule]:
    if not tree.ports:
        return []
    listed = ", ".join(map(str, tree.ports))
    return [
        (
            f"meta skuid >= 0 tcp {word} {{ {listed} }} meta priority set {handle(CONTROL)} return",
            f"control traffic {direction} these ports",
        )
        for word, direction in (("sport", "from"), ("dport", "to"))
    ]


def elements(entry: Entry) -> list[Element]:
    """An attachment's elements."""
    if not entry.way:
        return []
    found = [("ip", "ways", f'"{entry.way}" . {address}') for address in entry.ipv4]
    if entry.minor is not None and entry.address is not None:
        address = addresses.dotted(entry.address)
        found.append(("ip", "classes", f"{address} : {handle(entry.minor)}"))
        found.append(("ip", "spoken", f'"{entry.way}" . {address}{_share(entry.rate)}'))
    return found


def _share(rate: int) -> str:
    """The limit of who speaks for a pod whose class has this rate (bits per second)."""
    return limits.over(max(1, rate // 8 * _SPOKEN_PER_MILLE // 1000), _AT_ONCE)
