"""The nftables tables: which sets, chains and elements there are to be, and their text.

What they are for is said where they are listed: `marks` (whose packet has which class), `guard` (what a pod's
port carries), `tunnels` (who may speak to a VTEP), `peers` (what
goes to other nodes). Only rendering.
"""

from __future__ import annotations

from .. import names
from . import connections, guard, limits, marks, peers, shares, tunnels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .limits import Element, Rule
    from .records import Entry, Tree

TABLE = "concorde"
SETS: dict[tuple[str, str], tuple[str, str]] = {
    **marks.SETS,
    **guard.SETS,
    **tunnels.SETS,
    **shares.SETS,
    **connections.SETS,
    **peers.SETS,
}
# What packets put into these is nobody's to compare.
LEARNED = shares.LEARNED | connections.LEARNED | peers.LEARNED
# A chain hooks at one device: it is listed, and made and deleted with an attachment, as elements are.
INGRESS = "ingress"


def key_of(family: str, name: str) -> list[str]:
    """What an element of a set is made of: `ifname`, `ipv4_addr` and their like."""
    declared = SETS[family, name][1].partition(";")[0].partition(" : ")[0]
    return declared.partition(" ")[2].split(" . ")


def counts(family: str, name: str) -> bool:
    """Whether a set counts the packets of each of its elements; a chain is none."""
    return (family, name) in SETS and SETS[family, name][1].endswith("; counter")


def families(entries: Iterable[Entry], ipv6: bool) -> list[str]:
    """The families that must have a table for these attachments; `ipv6` says whether the kernel has it."""
    found = ["ip", "ip6", "bridge"] if ipv6 else ["ip", "bridge"]
    return [*found, *guard.ROUTED] if any(entry.is_routed for entry in entries) else found


def chains(
    trees: Sequence[Tree] = (), tracked: bool = False
) -> dict[tuple[str, str], tuple[str, list[Rule]]]:
    """All chains by family and name: where each hooks (empty if it is jumped to) and its rules.

    `tracked` as for tunnels.chains().
    """
    return {**guard.chains(), **tunnels.chains(tracked), **marks.chains(trees), **peers.chains(trees)}


def comments(rules: Iterable[Rule]) -> list[str]:
    """What the rules of a chain are known by: what each is for, and a digest, so that none is mistaken."""
    return [f"{purpose} [{names.digest(rule, purpose) & 0xFFFFFF:06x}]" for rule, purpose in rules]


def table(family: str) -> str:
    """A family's table, and its sets and chains without rules, as far as they are missing."""
    lines = [f"add table {family} {TABLE}"]
    for (of, name), (kind, content) in SETS.items():
        if of == family:
            lines.append(f"add {kind} {family} {TABLE} {name} {{ {content}; }}")
    for (of, name), (hook, _) in chains().items():
        if of == family and not hook:
            lines.append(f"add chain {family} {TABLE} {name}")
    return _text(lines)


def chain(family: str, name: str, trees: Sequence[Tree], tracked: bool = False) -> str:
    """A chain's rules in place of those it has; to be one transaction."""
    hook, rules = chains(trees, tracked)[family, name]
    base = f" {{ {hook}; policy accept; }}" if hook else ""
    lines = [f"add chain {family} {TABLE} {name}{base}", f"flush chain {family} {TABLE} {name}"]
    for (rule, _), comment in zip(rules, comments(rules)):
        lines.append(f'add rule {family} {TABLE} {name} {rule} comment "{comment}"')
    return _text(lines)


def tracking(ipv6: bool) -> str:
    """What is to be otherwise once connections are tracked; to be one transaction."""
    plain, found = chains(), chains(tracked=True)
    changed = [key for key in found if found[key] != plain.get(key) and (ipv6 or key[0] != "ip6")]
    return "".join(chain(family, name, (), tracked=True) for family, name in changed)


def elements(entry: Entry) -> list[Element]:
    """An attachment's own elements of the sets."""
    return [
        *marks.elements(entry),
        *tunnels.elements(entry),
        *shares.elements(entry),
        *connections.elements(entry),
        *guard.elements(entry),
    ]


def counting(entry: Entry) -> list[Element]:
    """Those of them that count packets; only the guard and what keeps VTEPs have such."""
    of = (*tunnels.elements(entry), *guard.elements(entry))
    return [element for element in of if element[1] != INGRESS and counts(*element[:2])]


def without_ipv6(elements: Iterable[Element]) -> list[Element]:
    """Those that there are where the kernel has no IPv6."""
    return [element for element in elements if element[0] != "ip6"]


def change(verb: str, changed: Iterable[Element]) -> str:
    """`add` or `delete` elements."""
    return "".join(map(_add if verb == "add" else _delete, changed))


def _add(element: Element) -> str:
    family, name, text = element
    if name != INGRESS:
        return f"add element {family} {TABLE} {name} {{ {text} }}\n"
    chain_name = guard.CHAIN_OF + text.strip('"')
    hook = f"type filter hook ingress device {text} priority {guard.PRIORITY}; policy accept;"
    return _text(
        [
            f"add chain {family} {TABLE} {chain_name} {{ {hook} }}",
            f"flush chain {family} {TABLE} {chain_name}",
            f"add rule {family} {TABLE} {chain_name} {guard.ENTRY}",
        ]
    )


def _delete(element: Element) -> str:
    family, name, text = element
    if name != INGRESS:
        return f"delete element {family} {TABLE} {name} {{ {limits.parted(text)[0]} }}\n"
    chain_name = guard.CHAIN_OF + text.strip('"')
    return f"flush chain {family} {TABLE} {chain_name}\ndelete chain {family} {TABLE} {chain_name}\n"


def _text(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"
