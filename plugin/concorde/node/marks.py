"""Which packet belongs to which class. Only nft's sets, chains and elements.

`table ip concorde` gives a pod's packets their class: by source address, and only if they came in by the
pod's own way, so a container elsewhere on the node that borrows the address gets nothing. It looks at them
when they are routed towards the overlay's device, where the source is still the pod's; the kernel keeps the
mark (skb->priority) through encapsulation, and HTB takes a mark with its own major number for the class. The
encapsulated packet passes once more, with the node's source, and keeps its mark. Before source NAT
(priority 100), so pods behind NAT are seen too.

What a process of the node sends has a socket of the node, and its own mark (SO_PRIORITY) is taken away first,
in IPv6 too.

The same place is the last before a neighbour is looked up. What is for a pod that is not there goes no
further: each such address would be an entry of a table that all networks of the machine share
(net/core/neighbour.c, neigh_alloc), and a broadcast to all pods.
"""

from __future__ import annotations

from .. import addresses
from .htb import CONTROL, handle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .tables import Element, Rule
    from .terms import Entry, Tree

SETS = {
    ("ip", "classes"): ("map", "type ipv4_addr : classid"),
    ("ip", "ways"): ("set", "type ifname . ipv4_addr"),
    ("ip", "addresses"): ("set", "type ipv4_addr"),
    ("ip", "bridges"): ("set", "type ifname"),
}
_POSTROUTING = "type filter hook postrouting priority 50"
_PREROUTING = "type filter hook prerouting priority -300"


def chains(tree: Tree | None) -> dict[tuple[str, str], tuple[str, list[Rule]]]:
    """The chains that give marks and take them."""
    ports = _control_ports(tree)
    return {
        ("ip", "prerouting"): (_PREROUTING, _FOREIGN),
        ("ip", "postrouting"): (_POSTROUTING, [*ports, _NODE, _NOBODY, _PODS]),
        ("ip6", "postrouting"): (_POSTROUTING, [*ports, _NODE]),
    }


# From outside it may come: what a balancer beyond the node sends back has the pod's address still.
_FOREIGN = [
    (
        "ip saddr @addresses iifname . ip saddr != @ways iifname != @underlays iifname != @vteps drop",
        "another on the node from a pod's address",
    )
]
_NODE = "meta skuid >= 0 meta priority set none return", "processes of the node"
# Not what goes to all of them, which passes here too where br_netfilter shows bridged packets to these hooks.
_NOBODY = "oifname @bridges oifname . ip daddr != @ways meta pkttype host drop", "to no pod"
_PODS = "iifname . ip saddr @ways meta priority set ip saddr map @classes", "pods with a guarantee"


def _control_ports(tree: Tree | None) -> list[Rule]:
    if tree is None or not tree.ports:
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
    """An attachment's own elements."""
    if not entry.way:
        return []
    found = []
    for address in entry.ipv4:
        found += [("ip", "ways", f'"{entry.way}" . {address}'), ("ip", "addresses", address)]
    if entry.minor is not None and entry.address is not None:
        found.append(("ip", "classes", f"{addresses.dotted(entry.address)} : {handle(entry.minor)}"))
    return found


def shared(entry: Entry) -> list[Element]:
    """Elements that go with the last attachment of a bridge of ours: all its ports are then known."""
    return [("ip", "bridges", f'"{entry.way}"')] if entry.is_ours else []
