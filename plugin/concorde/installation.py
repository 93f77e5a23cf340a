"""What an installer asks of a node: is everything there that pods of a network need, and away with all of it.

Both take a network configuration list as it stands in a `.conflist`, so that nobody has to take it apart.
"""

from __future__ import annotations

import os
import shutil

from . import addresses, links, run
from .cni import INVALID_CONFIGURATION, LATEST, CniError
from .configuration import Identity, invalid, text
from .release import release
from .requests import Request
from .status import status
from .store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .leases import Lease
    from .node.ledger import Ledger

TYPE = "concorde"
# Every runtime calls it for each pod, whatever the network (containerd, "cni" in its CRI configuration).
LOOPBACK = "loopback"


class InUseError(Exception):
    """Pods are still attached."""


def lacking(network: dict[str, Any], directory: str) -> list[str]:
    """In words, all that would keep an ADD of this list from working; `directory` has the plugins.

    Raises CniError 7 for a list that is none.
    """
    plugins = _plugins(network)
    kinds = [LOOPBACK, *(text(plugin, "type", "") for plugin in plugins)]
    found = [
        f"there is no plugin {kind} in {directory}"
        for kind in dict.fromkeys(kinds)
        if not os.access(f"{directory}/{kind}", os.X_OK)
    ]
    tools = [tool for tool in run.TOOLS if not _installed(tool)]
    found += [f"{tool} is not installed" for tool in tools]
    if not tools:
        found += [words for words in map(_complaint, _ours(network)) if words]
    return found


def dismantle(network: dict[str, Any]) -> list[str]:
    """Remove all that a network's pods left on the node, and return it in words.

    What all networks of a node share goes with the last of them. Raises InUseError while pods are attached,
    CniError 7 and run.CommandError.
    """
    removed = []
    for document in _ours(network):
        removed += _dismantle(Identity(document))
    return removed


def _dismantle(network: Identity) -> list[str]:
    removed: list[str] = []
    if os.path.exists(network.directory):
        _forget_the_gone(network)
        shutil.rmtree(network.directory)
        removed.append(network.directory)
    if links.exists(network.bridge) and not run.run("ip", "link", "show", "master", network.bridge).strip():
        links.remove(network.bridge)
        removed.append(network.bridge)
    removed += _dismantle_node(network.node_directory)
    return removed + _remove_if_last(network.node_directory)


def _forget_the_gone(network: Identity) -> None:
    """Give back what pods left whose end another configuration saw. Raises InUseError for the others."""
    book = _ledger(network.node_directory)
    living = []
    for lease in Store(network.directory).leases():
        if _lives(network, lease, book):
            living.append(addresses.dotted(lease.link.address) if lease.link else lease.container)
        else:
            release(network, lease.container, lease.interface, netns="")
    if living:
        raise InUseError(f"pods are still attached to network {network.name}: {', '.join(living)}")


def _lives(network: Identity, lease: Lease, book: Ledger | None) -> bool:
    """Whether the node still has the node's end of an attachment, or, of a chain's, what was entered."""
    if lease.link is not None:
        return links.exists(lease.link.host_veth)
    entry = book.find((network.name, lease.container, lease.interface)) if book else None
    return entry is not None and links.exists(entry.port or entry.way)


def _dismantle_node(directory: str) -> list[str]:
    """Remove the tree and the tables if nobody is entered."""
    from .locks import NodeLock
    from .node import kernel

    removed: list[str] = []
    book = _ledger(directory)
    if book is None:
        return removed
    with NodeLock(directory):
        tree = book.tree()
        if book.entries():
            return removed
        if tree is not None:
            removed.append(f"the tree on {tree.uplink}")
        kernel.dismantle(tree.uplink if tree else "")
        book.set_tree(None)
        removed.append("the nftables tables")
    return removed


def _remove_if_last(directory: str) -> list[str]:
    """Remove what all networks of the node share, if there is no other."""
    state, own = os.path.split(directory)
    if not os.path.exists(state) or set(os.listdir(state)) - {own}:
        return []
    shutil.rmtree(state)
    return [state]


def _ledger(directory: str) -> Ledger | None:
    from .node import ledger

    return ledger.Ledger(directory) if os.path.exists(ledger.path(directory)) else None


def _plugins(network: dict[str, Any]) -> list[dict[str, Any]]:
    plugins = network.get("plugins")
    if not isinstance(plugins, list) or not all(isinstance(plugin, dict) for plugin in plugins):
        raise invalid("plugins", "a network configuration list has a list of plugins")
    return plugins


def _ours(network: dict[str, Any]) -> list[dict[str, Any]]:
    """What the plugin would be given for each of its entries. Raises CniError 7 if there is none."""
    found = [plugin for plugin in _plugins(network) if plugin.get("type") == TYPE]
    if not found:
        raise invalid("plugins", f"none of them is of type {TYPE}")
    return [{**plugin, "name": network.get("name"), "cniVersion": LATEST} for plugin in found]


def _installed(tool: str) -> bool:
    try:
        run.find(tool)
    except FileNotFoundError:
        return False
    return True


def _complaint(document: dict[str, Any]) -> str:
    try:
        status(Request(document, "", "", ""))
    except CniError as error:
        return error.msg if error.code != INVALID_CONFIGURATION else f"the configuration's {error.msg}"
    return ""
