"""Where the kernel differs from the ledger, in words and in the lines that put it right."""

from __future__ import annotations

from .. import shaping
from . import htb, marks
from .terms import promised

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .observe import State
    from .terms import Entry, Tree


class Difference:
    """One difference: what it is, and what repairs it. `key` names the attachment it concerns, if one."""

    def __init__(
        self, text: str, tc: str = "", nft: str = "", key: tuple[str, str, str] | None = None
    ) -> None:
        self.text = text
        self.tc = tc
        self.nft = nft
        self.key = key


def differences(tree: Tree, entries: list[Entry], state: State) -> list[Difference]:
    """All differences. Applied in this order, no step promises more than the capacity."""
    return [*_of_tree(tree, entries, state), *_of_tables(tree, state), *_of_elements(entries, state)]


def _of_tree(tree: Tree, entries: list[Entry], state: State) -> list[Difference]:
    total = promised(entries)
    by_minor = {entry.minor: entry for entry in entries if entry.minor is not None}
    if state.root is None:
        return [Difference(f"the uplink {tree.uplink} is missing")]
    if state.root != "ours":
        has = "" if state.root == "default" else f" but {state.root}"
        text = f"{tree.uplink} has no root qdisc htb {htb.MAJOR} with default class {htb.DEFAULT:x}{has}"
        remove = "" if state.root == "default" else htb.delete_root(tree)
        pods = "".join(htb.add_class(tree, minor, total, entry) for minor, entry in by_minor.items())
        return [Difference(text, remove + htb.plant(tree, total) + pods)]
    wanted: dict[int, Entry | None] = {htb.ROOT: None, htb.CONTROL: None, **by_minor, htb.DEFAULT: None}
    found = [
        Difference(f"{_name(tree, minor)} belongs to nobody", htb.delete_class(tree, minor))
        for minor in sorted(state.classes.keys() - wanted.keys())
    ]
    for minor, entry in wanted.items():
        found += _of_class(tree, minor, entry, total, state)
    if found and htb.DEFAULT in state.classes:
        # The others' rates are changed while the default class leaves them room.
        found[0].tc = htb.change_default(tree, htb.LEAST_RATE) + found[0].tc
        found[-1].tc += htb.change_default(tree, htb.default_rate(tree, total))
    if not state.arp_filter:
        found.append(Difference(f"{tree.uplink} has no filter for ARP", htb.arp_filter(tree)))
    return found


def _of_class(tree: Tree, minor: int, entry: Entry | None, total: int, state: State) -> list[Difference]:
    name, key = _name(tree, minor, entry), entry.key if entry else None
    rate, ceil = htb.rates(tree, minor, total, entry)
    shown = state.classes.get(minor)
    if shown is None:
        line = htb.class_line("add", tree, minor, rate, ceil)
        queue = "" if minor == htb.ROOT else htb.queue_line(tree, minor, entry)
        return [Difference(f"{name} is missing", line + queue, key=key)]
    found = []
    expected = shaping.shown_rate(rate), shaping.shown_rate(ceil)
    if shown != expected:
        text = f"{name} has rate {shown[0]}, ceil {shown[1]}; expected {expected[0]}, {expected[1]}"
        found.append(Difference(text, htb.class_line("change", tree, minor, rate, ceil), key=key))
    if minor != htb.ROOT and state.queues.get(minor) != htb.queue(tree, entry):
        text = f"{name} has not its queue of {htb.queue(tree, entry)} bytes"
        found.append(Difference(text, htb.queue_line(tree, minor, entry), key=key))
    return found


def _of_tables(tree: Tree, state: State) -> list[Difference]:
    found = []
    for family in marks.FAMILIES:
        sets = {key for key in marks.SETS if key[0] == family}
        if state.comments.get(family) != marks.comments(family, tree) or not sets <= state.sets:
            name = f"nftables: {family} {marks.TABLE} {marks.CHAIN[family]}"
            what = "is not as made" if family in state.comments else "is missing"
            found.append(Difference(f"{name} {what}", nft=marks.chain(family, tree)))
    return found


def _of_elements(entries: list[Entry], state: State) -> list[Difference]:
    wanted = {element: entry for entry in entries for element in marks.elements(entry)}
    # Stale ones first: a map holds one value for each key.
    found = [
        Difference(f"nftables: {_shown(element)} belongs to nobody", nft=marks.change("delete", [element]))
        for element in sorted(state.elements - wanted.keys())
    ]
    for element, entry in wanted.items():
        if element not in state.elements:
            text = f"nftables: {_shown(element)} of {entry.who} is missing"
            found.append(Difference(text, nft=marks.change("add", [element]), key=entry.key))
    return found


def _name(tree: Tree, minor: int, entry: Entry | None = None) -> str:
    owner = f" of {entry.who}" if entry else ""
    special = {htb.ROOT: " (all)", htb.CONTROL: " (control)", htb.DEFAULT: " (default)"}.get(minor, "")
    return f"class {htb.handle(minor)}{owner or special} of {tree.uplink}"


def _shown(element: marks.Element) -> str:
    family, name, text = element
    return f"{family} {marks.TABLE} {name} {{ {text} }}"
