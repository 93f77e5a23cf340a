"""Which packet belongs to which class. Only nft's sets, chains and elements.

`table ip concorde` gives a pod's packets their class: by source address, and only if they came in by the
pod's own way, so a container elsewhere on the node that borrows the address gets nothing. It looks at them
when they are routed towards the overlay's device, where the source is still the pod's; the kernel keeps the
mark (skb->priority) through encapsulation, and HTB takes a mark with its own major number for the class. The
encapsulated packet passes once more, with the node's source, and keeps its mark. Before source NAT
(priority 100), so pods behind NAT are seen too.

What a process of the node sends has a socket of the node, and its own mark (SO_PRIORITY) is taken away first,
in IPv6 too.
"""

from __future__ import annotations

from .. import addresses
from .htb import CONTROL, handle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .parts import Element, Rule
    from .records import Entry, Tree

SETS = {
    ("ip", "classes"): ("map", "type ipv4_addr : classid"),
    ("ip", "ways"): ("set", "type ifname . ipv4_addr"),
}
_POSTROUTING = "type filter hook postrouting priority 50"
_NODE = "meta skuid >= 0 meta priority set none return", "processes of the node"
_PODS = "iifname . ip saddr @ways meta priority set ip saddr map @classes", "pods with a guarantee"


def chains(tree: Tree | None) -> dict[tuple[str, str], tuple[str, list[Rule]]]:
    """The chains that give marks and take them; without a tree nobody would heed them."""
    if tree is None:
        return {}
    ports = _control_ports(tree)
    return {
        ("ip", "postrouting"): (_POSTROUTING, [*ports, _NODE, _PODS]),
        ("ip6", "postrouting"): (_POSTROUTING, [*ports, _NODE]),
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
        found.append(("ip", "classes", f"{addresses.dotted(entry.address)} : {handle(entry.minor)}"))
    return found
