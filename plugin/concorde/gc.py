"""GC: drop what belongs to attachments of this network which the runtime no longer knows."""

from __future__ import annotations

import json
import os

from . import links, names, run
from .cni import COMMAND_FAILED, CniError, shown
from .configuration import Identity, invalid
from .release import release
from .store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .requests import Request

VALID = "cni.dev/valid-attachments"


def gc(request: Request) -> None:
    """Remove all stale attachments, going on after an error. Raises CniError with all errors."""
    network = Identity(request.document)
    valid = _valid(request)
    errors = _drop_leases(network, valid) + _drop_entries(network, valid) + _drop_ports(network, valid)
    if errors:
        raise CniError(COMMAND_FAILED, errors[0], "\n".join(errors))


def _valid(request: Request) -> set[tuple[str, str]]:
    entries = request.document.get(VALID)
    # A missing list must not be taken for an empty one: that would cut off every pod.
    if not isinstance(entries, list):
        raise invalid(VALID, f"{shown(entries)} is not a list")
    for entry in entries:
        if not isinstance(entry, dict) or not all(
            isinstance(entry.get(key), str) for key in ("containerID", "ifname")
        ):
            raise invalid(VALID, f"{shown(entry)} has no containerID and ifname")
    return {(entry["containerID"], entry["ifname"]) for entry in entries}


def _drop_leases(network: Identity, valid: set[tuple[str, str]]) -> list[str]:
    errors = []
    for lease in Store(network.directory).leases():
        if (lease.container, lease.interface) in valid:
            continue
        try:
            release(network, lease.container, lease.interface, netns="")
        except run.CommandError as failure:
            errors.append(str(failure))
    return errors


def _drop_entries(network: Identity, valid: set[tuple[str, str]]) -> list[str]:
    """Drop this network's entries of the node's ledger that no lease tells of; others' are not ours."""
    from .node import ledger

    if not os.path.exists(ledger.path(network.node_directory)):
        return []
    errors = []
    for entry in ledger.Ledger(network.node_directory).entries():
        if entry.network != network.name or (entry.container, entry.interface) in valid:
            continue
        try:
            release(network, entry.container, entry.interface, netns="")
        except run.CommandError as failure:
            errors.append(str(failure))
    return errors


def _drop_ports(network: Identity, valid: set[tuple[str, str]]) -> list[str]:
    """Drop veths on this network's bridge that no lease tells of: somebody removed the store."""
    if not links.exists(network.bridge):
        return []
    errors = []
    kept = {names.host_veth(network.name, *attachment) for attachment in valid}
    try:
        ports = json.loads(run.run("ip", "-j", "link", "show", "master", network.bridge) or "[]")
        for name in (port["ifname"] for port in ports):
            if names.is_host_veth(name) and name not in kept:
                links.remove(name)
    except run.CommandError as failure:
        errors.append(str(failure))
    return errors
