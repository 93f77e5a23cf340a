"""Changing the kernel's state to what the ledger says. Everything here is called under the node's lock.

The common case, one pod more or less, changes only what concerns that pod, and what is not promised; nothing
is listed. Should that fail, because something is missing or in the way, all is compared and repaired.
"""

from __future__ import annotations

from edge import netlink as nl

from .. import batches, links, rtnetlink, tools
from ..cni import UPLINK_CONFLICT, CniError
from . import connections, htb, marks, nfnetlink, tables, tunnels, uplinks
from .records import of_tree, promised

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .differences import Difference
    from .limits import Element
    from .observe import State
    from .records import Entry, Tree

# nft sends a transaction in one piece. It must fit into a socket's buffer (net.core.wmem_max), which only the
# machine's own root may enlarge.
_MOST_LINES = 400


def enter(tree: Tree | None, entry: Entry, total: int) -> None:
    """Give an attachment its classes and its elements, and close its port.

    `total` is what is promised in its tree, which includes it. All rates are in bits per second. What is not
    promised gives way before the new classes come. Raises tools.CommandError and OSError, and may then have
    done half of it.
    """
    tc = ""
    if tree is not None:
        fair = is_fair(tree)
        tc = htb.change_rest(tree, htb.default_rate(tree, total)) if entry.rate else ""
        tc += "".join(htb.add_class(tree, minor, total, entry, fair) for minor in htb.minors(entry))
    overlays = tunnels.read([tree] if tree else [])
    elements = [*overlays, *tunnels.shared(entry), *tables.elements(entry)]
    nfnetlink.change("add", _plain(elements))
    if entry.port and entry.mac:
        rtnetlink.close_port(entry.port, entry.mac, entry.is_ours)
    ip = "".join(map(uplinks.take_apart, tunnels.devices(overlays))) if tree and tree.segment else ""
    batches.run_all(
        ("tc", tc), ("nft", tables.change("add", _chains(elements))), *([("ip", ip)] if ip else ())
    )
    _learn_tracking()


def change(tree: Tree, before: Entry, after: Entry, total: int) -> None:
    """Give an attachment's class other rates, where it is; what waits there stays.

    Where it keeps its own nothing is done: in a fabric more may be granted it. `total` (bits per second) is
    what is promised in its tree then. Raises tools.CommandError and OSError, and may then have done half of
    it.
    """
    assert after.minor is not None
    former, wanted = tables.elements(before), tables.elements(after)
    if (before.rate, before.ceil, former) == (after.rate, after.ceil, wanted):
        return
    if after.rate:
        own = htb.change_class(tree, after, is_fair(tree), new=not before.rate)
    else:
        own = htb.delete_class(tree, after.minor) if before.rate else ""
    rest = htb.change_rest(tree, htb.default_rate(tree, total))
    nft = tables.change("delete", [one for one in former if one not in wanted])
    nft += tables.change("add", [one for one in wanted if one not in former])
    batches.run_all(("tc", rest + own if after.rate > before.rate else own + rest), ("nft", nft))


def is_fair(tree: Tree) -> bool:
    """Whether flows take turns in the tree's queues; of all, that of control traffic tells. Raises OSError.

    That the kernel is able to says repair(), which made the tree: asking that might load a module each time.
    """
    *_, above = htb.queues(tree, htb.CONTROL, None, fair=True)
    major, _, minor = above.partition(":")
    number = int(major, 16) << 16 | int(minor, 16)
    return rtnetlink.qdisc_kind(rtnetlink.index_of(tree.uplink), number) == htb.FAIR


def leave(tree: Tree | None, entry: Entry, total: int) -> None:
    """Take classes and elements away; `total` (bits per second) is what remains promised in its tree.

    Raises tools.CommandError and OSError, and may then have done half of it.
    """
    tc = ""
    if tree is not None:
        tc = "".join(htb.delete_class(tree, minor) for minor in htb.minors(entry))
        tc += htb.change_rest(tree, htb.default_rate(tree, total)) if entry.rate else ""
    elements = tables.elements(entry)
    nfnetlink.change("delete", _plain(elements))
    _forget_connections(entry)
    batches.run_all(("tc", tc), ("nft", tables.change("delete", _chains(elements))))


def _forget_connections(entry: Entry) -> None:
    """Let the next pod of these addresses begin anew. What is known of none was never opened."""
    for element in connections.learned(entry) if connections.are_tracked() else ():
        try:  # noqa: SIM105 - importing contextlib costs a millisecond
            nfnetlink.change("delete", [element])
        except OSError:
            pass


def _plain(elements: list[Element]) -> list[Element]:
    found = [element for element in elements if element[1] != tables.INGRESS]
    return found if links.has_ipv6() else tables.without_ipv6(found)


def _chains(elements: list[Element]) -> list[Element]:
    return [element for element in elements if element[1] == tables.INGRESS]


def learn(trees: Sequence[Tree]) -> None:
    """Take notice of VTEPs that appeared since, and of connections that are tracked by now.

    Without the tables nothing is done: that is a difference.
    """
    try:
        nfnetlink.change("add", _plain(tunnels.read(trees)))
        _learn_tracking()
    except (OSError, tools.CommandError):
        pass


def _learn_tracking() -> None:
    if connections.are_tracked() and not nfnetlink.has_chain(*connections.CHAIN):
        batches.run_all(("nft", tables.tracking(links.has_ipv6())))


def compare(trees: Sequence[Tree], entries: list[Entry]) -> tuple[State, list[Difference]]:
    """What the kernel has, and where it differs from the ledger. Raises tools.CommandError and OSError."""
    from .differences import differences
    from .observe import observe

    state = observe(*_uplinks(trees))
    for uplink in state.uplinks.values():
        uplink.fair = rtnetlink.has_fq_codel()
    if any(tree.segment for tree in trees):
        state.segments = uplinks.segments(tools.run("ip", "-j", "-d", "link", "show", "type", "vxlan"))
    state.links = _links(entries)
    return state, differences(trees, entries, state, tunnels.read(trees))


def _links(entries: list[Entry]) -> dict[str, int]:
    """The numbers of all links by their names, if it matters to an attachment."""
    if not any(entry.link for entry in entries):
        return {}
    from .. import host_interfaces

    return host_interfaces.indexes()


def missing(trees: Sequence[Tree], entries: list[Entry]) -> tuple[list[Tree], list[str]]:
    """The trees and the tables' families of which nothing is there; that is known at once. Raises OSError."""
    has_ipv6 = links.has_ipv6()
    families = tables.families(entries, has_ipv6)
    return (
        [
            tree
            for tree in trees
            if links.exists(tree.uplink) and not rtnetlink.has_root(rtnetlink.index_of(tree.uplink))
        ],
        [family for family in families if not nfnetlink.has_table(family)],
    )


def restore(trees: Sequence[Tree], entries: list[Entry]) -> list[str]:
    """Make what is missing(), and return what it was: without it promises are not kept.

    Nothing else is looked at, which takes many times as long. Raises tools.CommandError and OSError.
    """
    roots, families = missing(trees, entries)
    if not roots and not families:
        return []
    from .differences import differences
    from .observe import State, UplinkState

    state = State()
    state.has_ipv6 = links.has_ipv6()
    state.links = _links(entries)
    for tree in roots:
        state.uplinks[tree.uplink] = UplinkState()
        state.uplinks[tree.uplink].fair = rtnetlink.has_fq_codel()
    found = [
        difference
        for difference in differences(trees, entries, state, tunnels.read(trees))
        if difference.uplink in state.uplinks or difference.family in families
    ]
    _apply("".join(difference.tc for difference in found), [difference.nft for difference in found])
    return [difference.text for difference in found]


def repair(
    trees: Sequence[Tree],
    entries: list[Entry],
    *,
    own: Tree | None = None,
    take_over: bool = False,
    fresh: bool = False,
    tables_only: bool = False,
) -> list[str]:
    """Compare all with the ledger, put it right, and return what was wrong.

    `own` is the tree that it is about: with `take_over` it may take somebody else's place, `fresh` says that
    the ledger did not know it before, and another's uplink may be missing. Without, one that is missing is an
    error once all else is repaired. With `tables_only` trees are left as they are. Raises CniError 106 when
    somebody else configured an uplink, tools.CommandError and OSError.
    """
    state, found = compare(trees, entries)
    if tables_only:
        found = [difference for difference in found if not difference.tc and not difference.ip]
    else:
        for tree in trees:
            if tree == own or tree.uplink in state.uplinks:
                _require_uplink(tree, state, tree == own and take_over, tree == own and fresh)
    _apply(
        "".join(difference.tc for difference in found),
        [difference.nft for difference in found],
        "".join(difference.ip for difference in found),
    )
    for difference in found:
        if difference.port is not None:
            _if_there(rtnetlink.close_port, *difference.port)
    _learn_tracking()
    if own is None and not tables_only:
        for tree in trees:
            _require_uplink(tree, state, take_over=True, fresh=False)
    return [difference.text for difference in found if not difference.waits]


def _require_uplink(tree: Tree, state: State, take_over: bool, fresh: bool) -> None:
    """Refuse an uplink that is missing, or somebody else's; as for repair()."""
    uplink = state.uplinks.get(tree.uplink)
    if uplink is None:
        raise CniError(UPLINK_CONFLICT, f"the uplink {tree.uplink} is missing")
    if not take_over:
        strange = uplink.classes.keys() - {*htb.INNER, *htb.special(tree)} if fresh else ()
        require_ours(tree.uplink, state, bool(strange))


def open_port(entry: Entry) -> None:
    """Let a pod's port be as it was before, if there is one. Raises OSError."""
    if entry.port and entry.mac:
        _if_there(rtnetlink.open_port, entry.port, entry.mac)


def _if_there(change: Callable[..., None], *port: object) -> None:
    """Change a port that may have gone meanwhile: its link ends with the pod's network, at any moment."""
    with nl.Ignoring(rtnetlink.NO_SUCH_DEVICE):
        change(*port)


def require_ours(uplink: str, state: State, unknown: bool = False) -> None:
    """Refuse to touch what somebody else configured. Raises CniError 106."""
    root = state.uplinks[uplink].root if uplink in state.uplinks else "default"
    if root not in ("ours", "default"):
        raise CniError(
            UPLINK_CONFLICT,
            f"somebody else configured {uplink}: its root qdisc is {root}; remove it, or set takeOver",
        )
    if unknown:
        raise CniError(
            UPLINK_CONFLICT,
            f"{uplink} has a tree of guarantees that is not in this ledger (another stateDir, or"
            " a removed one); remove its root qdisc, or set takeOver",
        )


def clear(tree: Tree | None, entry: Entry, entries: list[Entry]) -> None:
    """Take an attachment out of whatever is left of the kernel's state: leave() for when that fails.

    `entries` are those that remain. A tree that is gone, or no longer ours, is left to reconcile. Raises
    tools.CommandError.
    """
    from .observe import observe

    state = observe(*([tree.uplink] if tree else []))
    uplink = state.uplinks.get(tree.uplink) if tree is not None else None
    tc = ""
    if tree is not None and uplink is not None and uplink.root == "ours":
        left = [minor for minor in htb.minors(entry) if minor in uplink.classes]
        tc = "".join(htb.delete_class(tree, minor) for minor in left)
        rest = htb.default_rate(tree, promised(of_tree(tree, entries)))
        tc += htb.change_rest(tree, rest, uplink.classes)
    kept = {element for other in entries for element in tables.elements(other)}
    stale = [
        element for element in tables.elements(entry) if element in state.elements and element not in kept
    ]
    _apply(tc, [tables.change("delete", stale)])


def abandon(uplink: str) -> None:
    """Take our tree off an interface that is the node's uplink no longer, as far as that is possible."""
    if links.exists(uplink):
        try:
            batches.run("tc", f"qdisc delete dev {uplink} root handle {htb.MAJOR}\n")
            batches.run("ip", uplinks.as_made(tools.run("ip", "-j", "ntable", "show"), uplink))
        except tools.CommandError:
            pass  # it had none, or is gone


def give_up(tree: Tree, rest: Sequence[Tree]) -> None:
    """Take a tree away, and what tables say of it; `rest` are the others. Raises OSError."""
    abandon(tree.uplink)
    families = ("ip", "ip6") if links.has_ipv6() else ("ip",)
    chains = [chain for chain in marks.chains(rest) if chain[0] in families]
    try:  # noqa: SIM105 - importing contextlib costs a millisecond
        batches.run_all(("nft", "".join(tables.chain(*chain, rest) for chain in chains)))
    except tools.CommandError:
        pass  # they are not as made, which is a difference


def dismantle(trees: Sequence[Tree]) -> bool:
    """Take away the trees and the tables, for good; whether there were tables. Raises tools.CommandError."""
    from .observe import FAMILIES, observe

    for uplink in _uplinks(trees):
        abandon(uplink)
    there = observe().families
    present = [family for family in FAMILIES if family in there]
    batches.run_all(("nft", "".join(f"delete table {family} {tables.TABLE}\n" for family in present)))
    return bool(present)


def _uplinks(trees: Sequence[Tree]) -> list[str]:
    return [tree.uplink for tree in trees]


def _apply(tc: str, pieces: list[str], ip: str = "") -> None:
    """Do all side by side; no piece for nft is divided between two transactions."""
    transactions = [""]
    for piece in pieces:
        if (transactions[-1] + piece).count("\n") > _MOST_LINES:
            transactions.append("")
        transactions[-1] += piece
    batches.run_all(("tc", tc), ("nft", transactions[0]), ("ip", ip))
    for transaction in transactions[1:]:
        batches.run_all(("nft", transaction))
