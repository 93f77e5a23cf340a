"""Changing the kernel's state to what the ledger says. Everything here is called under the node's lock.

The common case, one pod more or less, changes only what concerns that pod, and the default class; nothing is
listed. Should that fail, because something is missing or in the way, all is compared and repaired.
"""

from __future__ import annotations

from .. import links, run
from ..cni import UPLINK_CONFLICT, CniError
from . import htb, marks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .terms import Entry, Tree

# nft sends a transaction in one piece. It must fit into a socket's buffer (net.core.wmem_max), which only the
# machine's own root may enlarge. The chains' lines come first, so they stay together.
_MOST_LINES = 400


def enter(tree: Tree, entry: Entry, promised: int) -> None:
    """Give an attachment its class and its elements; `promised` (bits per second) includes it.

    The default class gives way before the new class comes. Raises run.CommandError, and may then have done
    half of it.
    """
    tc = htb.change_default(tree, htb.default_rate(tree, promised))
    if entry.minor is not None:
        tc += htb.add_class(tree, entry.minor, promised, entry)
    run.batches(("tc", tc), ("nft", marks.change("add", marks.elements(entry))))


def leave(tree: Tree, entry: Entry, promised: int) -> None:
    """Take class and elements away; `promised` (bits per second) is what remains.

    Raises run.CommandError, and may then have done half of it.
    """
    tc = htb.change_default(tree, htb.default_rate(tree, promised))
    if entry.minor is not None:
        tc = htb.delete_class(tree, entry.minor) + tc
    run.batches(("tc", tc), ("nft", marks.change("delete", marks.elements(entry))))


def repair(tree: Tree, entries: list[Entry], *, take_over: bool = False, fresh: bool = False) -> list[str]:
    """Compare all with the ledger, put it right, and return what was wrong.

    `fresh` says that the ledger knew of no tree before. Raises CniError 106 when somebody else configured the
    uplink, run.CommandError.
    """
    from .differences import differences
    from .observe import observe

    state = observe(tree.uplink)
    found = differences(tree, entries, state)
    if state.root is None:
        raise CniError(UPLINK_CONFLICT, f"the uplink {tree.uplink} is missing")
    if not take_over:
        strange = state.classes.keys() - {htb.ROOT, htb.CONTROL, htb.DEFAULT} if fresh else ()
        require_ours(tree.uplink, state.root, bool(strange))
    _apply(tc="".join(difference.tc for difference in found), nft="".join(d.nft for d in found))
    return [difference.text for difference in found]


def require_ours(uplink: str, root: str | None, unknown: bool) -> None:
    """Refuse to touch what somebody else configured. Raises CniError 106."""
    if root not in (None, "ours", "default"):
        raise CniError(
            UPLINK_CONFLICT,
            f"somebody else configured {uplink}: its root qdisc is {root}; remove it, or set takeOver",
        )
    if unknown:
        raise CniError(
            UPLINK_CONFLICT,
            f"{uplink} has a tree of guarantees that this ledger knows nothing of (another stateDir, or"
            " a removed one); remove its root qdisc, or set takeOver",
        )


def clear(tree: Tree, entry: Entry, entries: list[Entry]) -> None:
    """Take an attachment out of whatever is left of the kernel's state: leave() for when that fails.

    `entries` are those that remain. A tree that is gone, or no longer ours, is left to reconcile. Raises
    run.CommandError.
    """
    from .observe import observe

    state = observe(tree.uplink)
    tc = ""
    if state.root == "ours" and entry.minor in state.classes:
        tc = htb.delete_class(tree, entry.minor) if entry.minor is not None else ""
    if state.root == "ours" and htb.DEFAULT in state.classes:
        tc += htb.change_default(tree, htb.default_rate(tree, sum(other.rate for other in entries)))
    kept = {element for other in entries for element in marks.elements(other)}
    stale = [
        element for element in marks.elements(entry) if element in state.elements and element not in kept
    ]
    _apply(tc, marks.change("delete", stale))


def abandon(uplink: str) -> None:
    """Take our tree off an interface that is the node's uplink no longer, as far as that is possible."""
    if links.exists(uplink):
        try:  # noqa: SIM105 - importing contextlib costs a millisecond
            run.run("tc", "qdisc", "delete", "dev", uplink, "root", "handle", htb.MAJOR)
        except run.CommandError:
            pass  # it had none


def dismantle(uplink: str) -> None:
    """Take away the tree and the tables, for good. Raises run.CommandError."""
    abandon(uplink)
    # A table that is not there cannot be deleted, but one that is can be added.
    tables = [f"{family} {marks.TABLE}" for family in marks.FAMILIES]
    run.batch("nft", "".join(f"add table {table}\ndelete table {table}\n" for table in tables))


def _apply(tc: str, nft: str) -> None:
    lines = nft.splitlines(keepends=True)
    run.batches(("tc", tc), ("nft", "".join(lines[:_MOST_LINES])))
    for start in range(_MOST_LINES, len(lines), _MOST_LINES):
        run.batches(("nft", "".join(lines[start : start + _MOST_LINES])))
