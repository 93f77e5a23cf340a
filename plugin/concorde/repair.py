"""Making the kernel's state what the ledger says: for `reconcile`, the agent, and when a version comes."""

from __future__ import annotations

from . import links
from .cni import TRY_AGAIN, CniError
from .configuration import node_directory
from .locks import NodeLock
from .node import attachments, kernel, ledger, tables


def repair(state: str) -> list[str] | None:
    """Do it, and return what was wrong in words; None where no pod is attached.

    Raises CniError 106, 107 and 108, tools.CommandError and OSError.
    """
    directory = node_directory(state)
    if not ledger.is_there(directory):
        return None
    attachments.take_over(state)
    with NodeLock(directory):
        book = ledger.Ledger(directory)
        attachments.complete(book)
        trees, entries = book.trees(), book.entries()
        return kernel.repair(trees, entries) if trees or entries else None


def differences(state: str) -> tuple[list[str], list[str]]:
    """What seems wrong, in words, without the node's lock: no pod waits for it; and whose tables are needed.

    A call that changes something meanwhile may show as a difference; repair() looks again. Raises what that
    raises, but CniError 106.
    """
    try:
        book = ledger.Ledger(node_directory(state), reading=True)
    except CniError as error:
        if error.code != TRY_AGAIN:
            raise
        return [error.msg], []  # left half changed by a killed call, which whoever may write undoes
    trees, entries = book.trees(), book.entries()
    if not (trees or entries):
        return [], []
    _, found = kernel.compare(trees, entries)
    texts = [difference.text for difference in found if not difference.waits]
    return texts, tables.families(entries, links.has_ipv6())
