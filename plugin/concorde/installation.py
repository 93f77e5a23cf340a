"""What an installer asks of a node: is all there that pods need; bring them up to date; away with all of it.

Each takes a network configuration list as it stands in a `.conflist`, so that nobody has to take it apart.
"""

from __future__ import annotations

import os

from . import (
    addresses,
    bridges,
    chain,
    enforcements,
    host_interfaces,
    links,
    namespaces,
    state_files,
    surroundings,
    tools,
)
from .cni import INVALID_CONFIGURATION, LATEST, TYPE, VERSIONS, CniError, shown
from .configuration import Configuration, Identity, invalid, text
from .locks import NodeLock
from .names import is_host_veth
from .node import attachments, kernel, ledger, shares
from .requests import Request
from .verbs.delete import release
from .verbs.status import status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Every runtime calls it for each pod, whatever the network (containerd, "cni" in its CRI configuration).
LOOPBACK = "loopback"

TABLES = "the nftables tables"


class InUseError(Exception):
    """Pods are still attached."""


class NotOursError(Exception):
    """Something is in the way that this plugin did not make."""


def chained(network: dict[str, Any], behind: dict[str, Any]) -> dict[str, Any]:
    """Another's network configuration, as a list, with the plugins of a list of ours behind its own.

    It stays that network in all else: runtimes and other plugins know pods by its name. Raises CniError 7.
    """
    _ours(behind)
    plugins = _plugins(network) if "plugins" in network else [network]  # a single configuration is no list
    if any(plugin.get("type") == TYPE for plugin in plugins):
        raise invalid("plugins", f"{TYPE} is among them already")
    version = network.get("cniVersion")
    if version not in VERSIONS:
        raise invalid("cniVersion", f"{shown(version)} is not one of {', '.join(VERSIONS)}")
    whole = network if "plugins" in network else {key: network.get(key) for key in ("cniVersion", "name")}
    return {**whole, "plugins": [*plugins, *_plugins(behind)]}


def lacking(network: dict[str, Any], directory: str) -> list[str]:
    """In words, all that would keep an ADD of this list from working; `directory` has the plugins.

    Raises CniError 7 for a list that is none.
    """
    plugins = _plugins(network)
    kinds = [LOOPBACK, *(text(plugin, "type", "") for plugin in plugins)]
    found = [
        f"there is no plugin {kind} in {directory}"
        for kind in dict.fromkeys(kinds)
        # This one is at work, though perhaps not under its name yet.
        if kind != TYPE and not os.access(f"{directory}/{kind}", os.X_OK)
    ]
    found += chain.complaints(plugins)
    absent = [tool for tool in tools.TOOLS if not tools.is_there(tool)]
    found += [f"{tool} is not installed" for tool in absent]
    if not absent:
        found += [problem for problem in (_complaint(*ours) for ours in _ours(network)) if problem]
    return found


def notes(network: dict[str, Any]) -> list[str]:
    """In words, what is worth a second look where nothing is lacking. Raises CniError 7."""
    found = shares.narrow()
    for document, follows in _ours(network):
        one = Configuration(document)
        enforcement = enforcements.load(one.enforcement)
        found += surroundings.notes(one, enforcement.on_uplink(one), not follows)
        found += filter(None, [enforcement.absent(one)])
    return found


def identities(network: dict[str, Any]) -> list[Identity]:
    """The networks of this plugin that a list has. Raises CniError 7."""
    return [Identity(document) for document, _ in _ours(network)]


def dismantle(network: dict[str, Any]) -> list[str]:
    """Remove all that a network's pods left on the node, and return it in words.

    What all networks of a node share goes with the last of them. What this plugin did not make is known by
    name, kind and mark, and nothing is removed beside it. Pods whose interface another plugin made go on
    without a promise. Raises InUseError while others are attached, NotOursError, CniError 7, 107 and 108,
    tools.CommandError and OSError.
    """
    ours = [(Identity(document), follows) for document, follows in _ours(network)]
    for identity, follows in ours:
        _require_ours(identity, follows)
    removed = []
    for identity, follows in ours:
        removed += _dismantle(identity, follows)
    return removed


def _require_ours(network: Identity, follows: bool) -> None:
    """Refuse, before anything is touched, where something is not ours."""
    network.require_names()
    state_files.look(network.state)
    for directory in (network.directory, network.node_directory):
        state_files.look(directory)
        if os.path.lexists(directory):
            _require_only(
                directory, [name for name in os.listdir(directory) if not state_files.is_ours(name)]
            )
    if os.path.lexists(network.state):
        names = os.listdir(network.state)
        _require_only(network.state, [name for name in names if not os.path.isdir(f"{network.state}/{name}")])
    if follows or not links.exists(network.bridge):
        return  # another plugin's, in a chain
    if not bridges.is_marked(network.bridge):
        raise NotOursError(f"the interface {network.bridge} was not made by this plugin")
    others = [port for port in _ports(network.bridge) if not is_host_veth(port)]
    if others:
        raise NotOursError(f"{network.bridge} has ports that this plugin did not make: {', '.join(others)}")


def _require_only(directory: str, others: list[str]) -> None:
    if others:
        raise NotOursError(
            f"{directory} holds what this plugin did not make: {', '.join(sorted(others)[:5])}"
        )


def _ports(bridge: str) -> list[str]:
    return [link["ifname"] for link in links.shown("master", bridge)]


def _dismantle(network: Identity, follows: bool) -> list[str]:
    removed: list[str] = []
    attachments.take_over(network.state)
    ledger.opened(network.node_directory)  # a damaged one is an error before anything is removed
    if os.path.lexists(network.directory):
        removed += _let_go(network)
    if not follows and links.exists(network.bridge):
        ports = _ports(network.bridge)
        if ports:
            raise InUseError(f"pods are still attached to {network.bridge}: {', '.join(ports)}")
    if os.path.lexists(network.directory):
        _remove(network.directory)
        removed.append(network.directory)
    if not follows and links.exists(network.bridge):
        links.remove(network.bridge)
        removed.append(network.bridge)
    removed += _dismantle_node(network.node_directory)
    return removed + _remove_if_last(network.node_directory)


def _let_go(network: Identity) -> list[str]:
    """Give back what pods have that go on without us, and what those left whose end another list saw.

    Raises InUseError for pods that have no other network.
    """
    book = ledger.opened(network.node_directory)
    found = book.leases() if book else {}
    leases = [lease for key, lease in found.items() if key[0] == network.name]
    living = [lease.link for lease in leases if lease.link and links.exists(lease.link.host_veth)]
    if living:
        addressed = ", ".join(addresses.dotted(link.address) for link in living)
        raise InUseError(f"pods are still attached to network {network.name}: {addressed}")
    ends = namespaces.other_ends() if leases else {}
    removed = []
    for lease in leases:
        entry = book.find((network.name, lease.container, lease.interface)) if book else None
        stays = lease.link is None and entry is not None and host_interfaces.is_same(entry)
        netns = ends[entry.end][0] if stays and entry is not None and entry.end in ends else ""
        release(network, lease.container, lease.interface, netns, stays)
        if stays and entry is not None:
            removed.append(f"what {entry.who} had")
    if book is not None:
        with book:
            book.forget(network.name)
    return removed


def _dismantle_node(directory: str) -> list[str]:
    """Remove the trees and the tables if nobody is entered."""
    removed: list[str] = []
    book = ledger.opened(directory)
    if book is None:
        return removed
    with NodeLock(directory):
        trees = book.trees()
        if book.entries():
            return removed
        removed += [f"the tree on {tree.uplink}" for tree in trees]
        if kernel.dismantle(trees):
            removed.append(TABLES)
        with book:
            for tree in trees:
                book.replace_tree(tree, None)
    return removed


def _remove_if_last(directory: str) -> list[str]:
    """Remove what all networks of the node share, if there is no other."""
    state, own = os.path.split(directory)
    if not os.path.lexists(state) or set(os.listdir(state)) - {own}:
        return []
    book = ledger.opened(directory)
    if book is not None and book.entries():
        return []
    # Without a ledger nobody has told of these.
    tables = [TABLES] if book is None and kernel.dismantle(()) else []
    if os.path.lexists(directory):
        _remove(directory)
    os.rmdir(state)
    return [*tables, state]


def _remove(directory: str) -> None:
    """Remove a directory of ours, which holds nothing else; should something have come, it stays."""
    for name in os.listdir(directory):
        if state_files.is_ours(name):
            os.unlink(f"{directory}/{name}")
    os.rmdir(directory)


def _plugins(network: dict[str, Any]) -> list[dict[str, Any]]:
    plugins = network.get("plugins")
    if not isinstance(plugins, list) or not all(isinstance(plugin, dict) for plugin in plugins):
        raise invalid("plugins", "a network configuration list has a list of plugins")
    return plugins


def _ours(network: dict[str, Any]) -> list[tuple[dict[str, Any], bool]]:
    """What the plugin would be given for each of its entries, and whether it follows another there.

    Raises CniError 7 if there is none.
    """
    found = [
        ({**plugin, "name": network.get("name"), "cniVersion": LATEST}, at > 0)
        for at, plugin in enumerate(_plugins(network))
        if plugin.get("type") == TYPE
    ]
    if not found:
        raise invalid("plugins", f"none of them is of type {TYPE}")
    return found


def _complaint(document: dict[str, Any], follows: bool) -> str:
    try:
        status(Request(document, "", "", ""), beforehand=True, follows=follows)
    except CniError as error:
        return error.msg if error.code != INVALID_CONFIGURATION else f"the configuration's {error.msg}"
    return ""
