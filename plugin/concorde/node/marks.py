"""Which packet belongs to which class, as `nft` text. Only rendering.

`table ip concorde` gives a pod's packets their class: by source address, and only if they came in by the
pod's own way, so a container elsewhere on the node that borrows the address gets nothing. It looks at them
when they are routed towards the overlay's device, where the source is still the pod's; the kernel keeps the
mark (skb->priority) through encapsulation, and HTB takes a mark with its own major number for the class. The
encapsulated packet passes once more, with the node's source, and keeps its mark. Before source NAT
(priority 100), so pods behind NAT are seen too.

What a process of the node sends has a socket of the node, and its own mark (SO_PRIORITY) is taken away first,
in IPv6 too.

`table bridge concorde` sees to it that nobody sends from a pod's address but that pod, at the node's end of
each pod's veth pair, where the pod cannot undo it. IPv6 passes: no class can be had with it.
"""

from __future__ import annotations

from .. import addresses
from .htb import CONTROL, handle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .terms import Entry, Tree

TABLE = "concorde"
FAMILIES = ("ip", "ip6", "bridge")
CHAIN = {"ip": "postrouting", "ip6": "postrouting", "bridge": "prerouting"}
SETS = {
    ("ip", "classes"): ("map", "type ipv4_addr : classid"),
    ("ip", "ways"): ("set", "type ifname . ipv4_addr"),
    ("bridge", "ports"): ("set", "type ifname"),
    ("bridge", "senders"): ("set", "type ifname . ipv4_addr"),
    ("bridge", "addresses"): ("set", "type ipv4_addr"),
}
_HOOK = {
    "ip": "type filter hook postrouting priority 50; policy accept;",
    "ip6": "type filter hook postrouting priority 50; policy accept;",
    "bridge": "type filter hook prerouting priority -300; policy accept;",
}

Element = tuple[str, str, str]  # family, set, and the element as nft writes it


def rules(family: str, tree: Tree) -> list[tuple[str, str]]:
    """The rules of a family's chain, each with the comment it is known by."""
    if family == "bridge":
        checks = []
        for name, kind, source in (("IPv4", "ip", "ip saddr"), ("ARP", "arp", "arp saddr ip")):
            checks += [
                (f"iifname . {source} @senders return", f"{name}: a pod from its address"),
                (f"{source} @addresses drop", f"{name}: another from a pod's address"),
                (f"ether type {kind} iifname @ports drop", f"{name}: a pod from another address"),
            ]
        return checks
    found = []
    if tree.ports:
        listed = ", ".join(map(str, tree.ports))
        for word, direction in (("sport", "from"), ("dport", "to")):
            found.append(
                (
                    f"meta skuid >= 0 tcp {word} {{ {listed} }} meta priority set {handle(CONTROL)} return",
                    f"control traffic {direction} {listed}",
                )
            )
    found.append(("meta skuid >= 0 meta priority set none return", "processes of the node"))
    if family == "ip":
        found.append(
            ("iifname . ip saddr @ways meta priority set ip saddr map @classes", "pods with a guarantee")
        )
    return found


def comments(family: str, tree: Tree) -> list[str]:
    """What a family's chain is recognised by."""
    return [comment for _, comment in rules(family, tree)]


def chain(family: str, tree: Tree) -> str:
    """A family's table, sets and chain, made or repaired; sets keep their elements."""
    name = CHAIN[family]
    lines = [f"add table {family} {TABLE}"]
    for (of, set_name), (kind, content) in SETS.items():
        if of == family:
            lines.append(f"add {kind} {family} {TABLE} {set_name} {{ {content}; }}")
    lines += [
        f"add chain {family} {TABLE} {name} {{ {_HOOK[family]} }}",
        f"flush chain {family} {TABLE} {name}",
    ]
    for rule, comment in rules(family, tree):
        lines.append(f'add rule {family} {TABLE} {name} {rule} comment "{comment}"')
    return "\n".join(lines) + "\n"


def elements(entry: Entry) -> list[Element]:
    """An attachment's elements of the sets."""
    if entry.address is None:
        return []
    address = addresses.dotted(entry.address)
    found = []
    if entry.minor is not None:
        found.append(("ip", "classes", f"{address} : {handle(entry.minor)}"))
        found.append(("ip", "ways", f'"{entry.way}" . {address}'))
    if entry.port:
        found.append(("bridge", "ports", f'"{entry.port}"'))
        found.append(("bridge", "senders", f'"{entry.port}" . {address}'))
        found.append(("bridge", "addresses", address))
    return found


def change(verb: str, changed: Iterable[Element]) -> str:
    """`add` or `delete` elements."""
    return "".join(f"{verb} element {family} {TABLE} {name} {{ {text} }}\n" for family, name, text in changed)
