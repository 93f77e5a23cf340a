"""Making the kernel's state what the ledger says: for `reconcile`, and when a version comes into place."""

from __future__ import annotations

import os

from . import enforcements
from .configuration import node_directory
from .locks import NodeLock
from .node import attachments, kernel, ledger
from .store import stores


def repair(state: str) -> list[str] | None:
    """Do it, and return what was wrong in words; None where no pod is attached.

    Raises CniError 106, 107 and 108, tools.CommandError and OSError.
    """
    directory = node_directory(state)
    if not os.path.exists(ledger.path(directory)) and not (os.path.isdir(state) and stores(state)):
        return None
    with NodeLock(directory):
        book = ledger.Ledger(directory)
        attachments.adopt(book, directory, enforcements.reserves)
        tree, entries = book.tree(), book.entries()
        if tree is None and not entries:
            return None
        return kernel.repair(tree, entries)
