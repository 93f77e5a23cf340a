"""Enforcement `fabric`: what `node` does, and to other nodes no more goes than these have room for.

A pod's guarantee is its class in the tree on the uplink. What it may send besides, and what others send
without a promise, the receiving node grants: `concorde agent` divides the node's link (`concorde.fabric`). So
what is promised arrives, too, and an ingress guarantee can be promised.
"""

from __future__ import annotations

from .. import locks, state_files
from ..fabric import keys
from ..node.settings import Settings
from . import node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..configuration import Configuration

RESERVES = RECEIVES = True
_START = "start concorde agent with the cluster's --key, or make the installer's Secret concorde-fabric"
TOOLS, QDISCS = node.TOOLS, node.QDISCS
install, remove, check = node.install, node.remove, node.check


def on_uplink(network: Configuration) -> Settings | None:
    """The tree that promises are kept in, with its fabric. Raises CniError 7."""
    subnet = network.subnet
    return Settings(network.document, lambda: subnet()[0] if network.names_subnet else None, in_fabric=True)


def absent(network: Configuration) -> str:
    """What is missing to keep what pods receive: the agent that divides the link, or the key.

    Another cluster's agent may look after the node; without our key nobody believes what it says to ours.
    """
    if keys.is_left(network.directory) and locks.is_present(network.node_directory, state_files.FABRIC_LOCK):
        return ""
    return f"no agent divides this node's link yet: {_START}"
