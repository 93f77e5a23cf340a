"""Where the kernel differs from the ledger, in words and in the lines that put it right."""

from __future__ import annotations

from .. import shaping
from . import connections, htb, peers, tables, uplinks
from . import tunnels as vteps
from .records import of_tree, promised

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .limits import Element
    from .observe import State, UplinkState
    from .records import Entry, Tree

_SPECIAL = {
    htb.ROOT: " (all)",
    htb.CONTROL: " (control)",
    htb.BEST_EFFORT: " (best effort)",
    htb.DEFAULT: " (default)",
    htb.SAFE: " (without a grant)",
}


class Difference:
    """One difference: what it is, and what repairs it.

    `key` names the attachment it concerns, if one, and `uplink` the link, if it is of a tree. `nft` is one
    transaction, or part of one; `port` is what rtnetlink.close_port() is given. What `waits` does no harm
    until somebody repairs.
    """

    def __init__(
        self,
        text: str,
        tc: str = "",
        nft: str = "",
        key: tuple[str, str, str] | None = None,
        port: tuple[str, str, bool] | None = None,
        waits: bool = False,
        ip: str = "",
        uplink: str = "",
    ) -> None:
        self.text = text
        self.tc = tc
        self.nft = nft
        self.key = key
        self.port = port
        self.waits = waits
        self.ip = ip
        self.uplink = uplink

    @property
    def family(self) -> str:
        """That of the table it concerns, if one."""
        return self.nft.split(" ", 3)[2] if self.nft else ""


def differences(
    trees: Sequence[Tree], entries: list[Entry], state: State, tunnels: Iterable[Element] = ()
) -> list[Difference]:
    """All differences; `tunnels` are the elements that tunnels.read() found.

    Applied in this order, no step promises more than the capacity, and no rule is there before the elements
    by which it knows who may pass.
    """
    return [
        *(found for tree in trees for found in _of_uplink(tree, of_tree(tree, entries), state)),
        *_of_overlays(state),
        *_of_sets(entries, state),
        *_of_elements(entries, state, set(tunnels)),
        *_of_ports(entries, state),
        *_of_chains(trees, entries, state),
    ]


def _of_uplink(tree: Tree, entries: list[Entry], state: State) -> list[Difference]:
    uplink = state.uplinks.get(tree.uplink)
    if uplink is None:
        return [Difference(f"the uplink {tree.uplink} is missing", uplink=tree.uplink)]
    found = [*_of_tree(tree, entries, uplink), *_of_neighbours(tree, uplink)]
    for difference in found:
        difference.uplink = tree.uplink
    return found


def _of_tree(tree: Tree, entries: list[Entry], uplink: UplinkState) -> list[Difference]:
    total = promised(entries)
    of_pods = {minor: entry for entry in entries for minor in htb.minors(entry)}
    if uplink.root != "ours":
        has = "" if uplink.root == "default" else f" but {uplink.root}"
        text = f"{tree.uplink} has no root qdisc htb {htb.MAJOR} with default class {htb.DEFAULT:x}{has}"
        remove = "" if uplink.root == "default" else htb.delete_root(tree)
        fair = uplink.fair
        pods = "".join(htb.add_class(tree, minor, total, entry, fair) for minor, entry in of_pods.items())
        return [Difference(text, remove + htb.plant(tree, total, fair) + pods)]
    above = dict.fromkeys((htb.ROOT, htb.CONTROL, htb.BEST_EFFORT))
    wanted: dict[int, Entry | None] = {**above, **of_pods, **dict.fromkeys(htb.special(tree))}
    found = [
        Difference(f"{_name(tree, minor)} belongs to nobody", htb.delete_class(tree, minor))
        for minor in sorted(uplink.classes.keys() - wanted.keys())
    ]
    for minor, entry in wanted.items():
        found += _of_class(tree, minor, entry, total, uplink)
    if found:
        # The others' rates are changed while those without a promise leave them room.
        found[0].tc = htb.change_rest(tree, htb.LEAST_RATE, uplink.classes) + found[0].tc
        found[-1].tc += htb.change_rest(tree, htb.default_rate(tree, total))
    return _of_filters(tree, found, uplink)


def _of_filters(tree: Tree, of_classes: list[Difference], uplink: UplinkState) -> list[Difference]:
    """All of a tree: the kernel keeps a class that a filter names, and wants to have it before."""
    wanted = htb.filters(tree)
    to_nodes = set(filter(htb.is_to_nodes, uplink.filters))
    going = set() if to_nodes <= wanted.keys() else to_nodes  # which go all at once
    text = f"{tree.uplink} has filters that belong to nobody"
    missing = [
        Difference(f"{tree.uplink} has no filter for {purpose}", htb.add_filter(tree, one))
        for one, purpose in wanted.items()
        if one not in uplink.filters - going
    ]
    return [*([Difference(text, htb.delete_filters(tree))] if going else ()), *of_classes, *missing]


def _of_class(
    tree: Tree, minor: int, entry: Entry | None, total: int, uplink: UplinkState
) -> list[Difference]:
    name, key = _name(tree, minor, entry), entry.key if entry else None
    whole = htb.add_class(tree, minor, total, entry, uplink.fair)
    rate, ceil = htb.rates(tree, minor, total, entry)
    shown = uplink.classes.get(minor)
    if shown is None:
        return [Difference(f"{name} is missing", whole, key=key)]
    found = []
    count = shaping.shown_count(tree.overhead, tree.least)
    above = "" if minor == htb.ROOT else htb.parent(minor)
    shown_ceil = shaping.shown_rate(ceil)
    if _is_granted(shown[1], htb.granted(tree, minor, entry)):
        ceil, shown_ceil = shaping.rate_shown(shown[1]), shown[1]
    expected = (shaping.shown_rate(rate), shown_ceil, *count, above)
    if shown != expected:
        text = f"{name} has {_of(*shown)}; expected {_of(*expected)}"
        if shown[-1] != above:  # which cannot be changed
            return [Difference(text, htb.delete_class(tree, minor) + whole, key=key)]
        found.append(Difference(text, htb.class_line("change", tree, minor, rate, ceil), key=key))
    if minor not in htb.INNER:
        found += _of_queue(tree, minor, entry, uplink)
    return found


def _is_granted(shown: str, between: tuple[int, int] | None) -> bool:
    """Whether a ceiling, as tc shows it, is one that may have been granted; tc rounds."""
    if between is None:
        return False
    least, most = between
    return least * 0.999 <= shaping.rate_shown(shown) <= most * 1.001


def _of_queue(tree: Tree, minor: int, entry: Entry | None, uplink: UplinkState) -> list[Difference]:
    wanted = htb.queues(tree, minor, entry, uplink.fair)
    if wanted.items() <= uplink.queues.items():
        return []
    described = ", in it ".join(f"{kind} of {size} bytes" for kind, _, size in wanted.values())
    has, (kind, rate, _) = uplink.queues.get(htb.handle(minor)), wanted[htb.handle(minor)]
    # The number of flows cannot be changed.
    stays = has is None or (has[:2] == (kind, rate) and not uplink.fair)
    remove = "" if stays else htb.delete_queue(tree, minor)
    text = f"{_name(tree, minor, entry)} lacks its queue, {described}"
    line = remove + htb.queue_lines(tree, minor, entry, uplink.fair)
    return [Difference(text, line, key=entry.key if entry else None)]


def _of_neighbours(tree: Tree, uplink: UplinkState) -> list[Difference]:
    return [
        Difference(
            f"{tree.uplink} keeps {packets} packets for each neighbour that has not answered ({table});"
            f" expected {uplinks.MOST_WAITING}",
            ip=uplinks.let_wait(table, tree.uplink, uplinks.MOST_WAITING),
        )
        for table, packets in sorted(uplink.waiting.items())
        if packets > uplinks.MOST_WAITING
    ]


def _of_overlays(state: State) -> list[Difference]:
    return [
        Difference(f"{device} sends packets of {segments} segments", ip=uplinks.take_apart(device))
        for device, segments in sorted(state.segments.items())
        if segments > uplinks.MOST_SEGMENTS
    ]


def _of_sets(entries: list[Entry], state: State) -> list[Difference]:
    found = []
    for family in tables.families(entries, state.has_ipv6):
        wanted = {key for key in tables.SETS if key[0] == family}
        wanted_chains = {key for key, (hook, _) in tables.chains().items() if key[0] == family and not hook}
        if family not in state.families:
            text = f"nftables: table {family} {tables.TABLE} is missing"
        elif not wanted <= state.sets or not wanted_chains <= state.comments.keys():
            text = f"nftables: table {family} {tables.TABLE} is not as made"
        else:
            continue
        found.append(Difference(text, nft=tables.table(family)))
    return found


def _of_chains(trees: Sequence[Tree], entries: list[Entry], state: State) -> list[Difference]:
    found = []
    families = tables.families(entries, state.has_ipv6)
    # Once the chain for it is there, it is to be as made; that it is missing shows nothing.
    tracked = connections.CHAIN in state.comments
    for (family, name), (_, rules) in tables.chains(trees, tracked).items():
        if family in families and state.comments.get((family, name)) != tables.comments(rules):
            what = "is not as made" if (family, name) in state.comments else "is missing"
            text = f"nftables: {family} {tables.TABLE} {name} {what}"
            found.append(Difference(text, nft=tables.chain(family, name, trees, tracked)))
    for family, name in sorted(peers.CHAINS & state.comments.keys() - peers.chains(trees).keys()):
        text = f"nftables: {family} {tables.TABLE} {name} belongs to nobody"
        chain = f"chain {family} {tables.TABLE} {name}"
        found.append(Difference(text, nft=f"flush {chain}\ndelete {chain}\n"))
    for family, name in sorted(state.sets - tables.SETS.keys()):
        text = f"nftables: {family} {tables.TABLE} {name} belongs to nobody"
        found.append(Difference(text, nft=f"delete set {family} {tables.TABLE} {name}\n"))
    return found


def _of_elements(entries: list[Entry], state: State, read: set[Element]) -> list[Difference]:
    wanted: dict[Element, Entry | None] = dict.fromkeys(sorted(read))
    dead: set[Element] = set()
    for entry in entries:
        if _is_anothers(entry, state):
            dead.update(tables.elements(entry))
        else:
            wanted.update(dict.fromkeys((*tables.elements(entry), *vteps.shared(entry)), entry))
    if not state.has_ipv6:
        wanted = {element: wanted[element] for element in tables.without_ipv6(wanted)}
    found = []
    # Stale ones first: a map holds one value for each key.
    for element in sorted(state.elements - wanted.keys()):
        text = f"nftables: {_shown(element)} belongs to nobody"
        # What was a VTEP may be one again, that two pods' bridge is gone is no fault, what a dead pod left at
        # a link that has its name by now goes with that one's ADD.
        waits = element[:2] in vteps.READ or element[1] == "bridges" or element in dead
        found.append(Difference(text, nft=tables.change("delete", [element]), waits=waits))
    for element, owner in wanted.items():
        if element not in state.elements:
            of = f" of {owner.who}" if owner else ""
            text = f"nftables: {_shown(element)}{of} is missing"
            nft = tables.change("add", [element])
            found.append(Difference(text, nft=nft, key=owner.key if owner else None))
    return found


def _of_ports(entries: list[Entry], state: State) -> list[Difference]:
    found = []
    for entry in entries:
        # A port that is gone is not this one's to say; GC knows whether its pod is.
        if not entry.mac or entry.port not in state.ports or _is_anothers(entry, state):
            continue
        waits = False
        if entry.port not in state.closed:
            text = f"port {entry.port} of {entry.who} is open: it learns, is flooded, or leads past the guard"
        elif (entry.port, entry.mac) not in state.fixed:
            text = f"port {entry.port} of {entry.who} has lost its hardware address {entry.mac}"
        elif entry.is_ours and entry.port not in state.hairpins:
            # As the version before made it: the pod lacks itself as a service's endpoint, and nothing else.
            text, waits = f"port {entry.port} of {entry.who} has no hairpin mode", True
        else:
            continue
        port = entry.port, entry.mac, entry.is_ours
        found.append(Difference(text, key=entry.key, port=port, waits=waits))
    return found


def _is_anothers(entry: Entry, state: State) -> bool:
    """Whether another link has the name of an attachment's by now, of which no DEL has come yet."""
    return bool(entry.link) and state.links.get(entry.end, entry.link) != entry.link


def _of(rate: str, ceil: str, overhead: str, least: str, above: str) -> str:
    below = f", below {above}" if above else ""
    return f"rate {rate}, ceil {ceil}, overhead {overhead}, mpu {least}{below}"


def _name(tree: Tree, minor: int, entry: Entry | None = None) -> str:
    owner = f" of {entry.who}" if entry else ""
    return f"class {htb.handle(minor)}{owner or _SPECIAL.get(minor, '')} of {tree.uplink}"


def _shown(element: Element) -> str:
    family, name, text = element
    return f"{family} {tables.TABLE} {name} {{ {text} }}"
