"""Where this plugin stands in a network's list, and which orders cannot work.

A runtime tells a plugin its own entry of the list and, in ADD, what those before it made. What comes behind
stands in the runtime's directory alone, and is read there. A list that is not found is not judged.
"""

from __future__ import annotations

import os

from . import files, strict_json
from .cni import TYPE, CniError
from .configuration import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .configuration import Configuration

# What of the reference plugins makes an interface; so does what gives addresses, or lets another do so.
MAKERS = ("bridge", "ptp", "macvlan", "ipvlan", "vlan", "host-device", "dummy")
_MAKES = ("ipam", "delegate")
# What a pod sends by these leaves the node by their master, and comes into it nowhere.
PASSING_BY = ("macvlan", "ipvlan", "vlan")
UNGUARDED = "what a pod sends does not come into the node, where its guard would be: use bridge or ptp"
_LONGEST = 1 << 20


def require(network: Configuration) -> None:
    """Refuse an order that cannot work, if the network's list is found. Raises CniError 7 with its first."""
    for complaint in complaints(listed(network.name, network.lists)):
        place, _, problem = complaint.partition(": ")
        raise invalid(place, problem)


def listed(name: str, directory: str) -> list[dict[str, Any]]:
    """The plugins of the list of that name in which this one stands; none if there is no such list."""
    try:
        found = sorted(file for file in os.listdir(directory) if file.endswith(".conflist"))
    except OSError:
        return []
    for file in found:
        try:
            network = strict_json.decode(files.read(f"{directory}/{file}", _LONGEST))
        except (OSError, ValueError, CniError):
            continue
        plugins = network.get("plugins")
        if network.get("name") == name and isinstance(plugins, list):
            plugins = [plugin if isinstance(plugin, dict) else {} for plugin in plugins]
            if any(plugin.get("type") == TYPE for plugin in plugins):
                return plugins
    return []


def complaints(plugins: list[dict[str, Any]]) -> list[str]:
    """Why a list cannot work: each with a place in it, and what to change."""
    places = [at for at, plugin in enumerate(plugins) if plugin.get("type") == TYPE]
    if not places:
        return []
    own, *more = places
    found = [(at, f"{TYPE} stands in the list twice: take one out") for at in more]
    for at, plugin in enumerate(plugins):
        kind = plugin.get("type")
        if at > own and _is_maker(plugin):
            found.append((own, f"{TYPE} stands before {kind}, which makes the interface: put it behind"))
        elif kind in PASSING_BY:
            found.append((at, f"{kind}: {UNGUARDED}"))
        elif at > own and kind == "tuning" and _changes_mac(plugin):
            remedy = f"put it before {TYPE}" if own else "leave that out"
            found.append((at, f"tuning gives the pod a hardware address that the guard refuses: {remedy}"))
    return [f"plugins[{at}]: {text}" for at, text in found]


def _is_maker(plugin: dict[str, Any]) -> bool:
    kind = plugin.get("type")
    return isinstance(kind, str) and kind != TYPE and (kind in MAKERS or any(key in plugin for key in _MAKES))


def _changes_mac(plugin: dict[str, Any]) -> bool:
    capabilities = plugin.get("capabilities")
    return bool(plugin.get("mac")) or (isinstance(capabilities, dict) and capabilities.get("mac") is True)
