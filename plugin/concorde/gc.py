"""GC: drop what belongs to attachments of this network which the runtime no longer knows."""

from __future__ import annotations

import json

from . import links, names, run
from .cni import COMMAND_FAILED, UNTRUSTED, CniError, shown
from .configuration import Identity, invalid
from .database import usable, where_whole
from .release import opened, release
from .store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from .node.ledger import Ledger
    from .requests import Request

    T = TypeVar("T")
    R = TypeVar("R")

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
        if not isinstance(entry, dict) or not (
            _is(names.is_identifier, entry.get("containerID"))
            and _is(names.is_interface, entry.get("ifname"))
        ):
            raise invalid(VALID, f"{shown(entry)} has no proper containerID and ifname")
    return {(entry["containerID"], entry["ifname"]) for entry in entries}


def _is(rule: Callable[[str], bool], value: object) -> bool:
    return isinstance(value, str) and rule(value)


def _drop_leases(network: Identity, valid: set[tuple[str, str]]) -> list[str]:
    errors = []
    for lease in _read(lambda: opened(network), Store.leases):
        if (lease.container, lease.interface) in valid:
            continue
        try:
            release(network, lease.container, lease.interface, netns="")
        except run.CommandError as failure:
            errors.append(str(failure))
    return errors


def _drop_entries(network: Identity, valid: set[tuple[str, str]]) -> list[str]:
    """Drop this network's entries of the node's ledger that no lease tells of; others' are not ours."""
    from .node.ledger import Ledger

    errors = []
    for entry in _read(lambda: _ledger(network), Ledger.entries):
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
                _drop_port(network, name)
    except run.CommandError as failure:
        errors.append(str(failure))
    return errors


def _drop_port(network: Identity, name: str) -> None:
    from .node import remains

    links.remove(name)
    store = opened(network)
    if store is not None:
        where_whole(lambda: store.drop_port(name))
    if _ledger(network) is None:
        remains.forget({name})


def _ledger(network: Identity) -> Ledger | None:
    """The node's ledger, if it is there and whole."""
    from .node import ledger

    directory = network.node_directory
    return usable(ledger.path(directory), lambda: ledger.Ledger(directory))


def _read(open_it: Callable[[], T | None], rows: Callable[[T], list[R]]) -> list[R]:
    """What a file tells, which is nothing if it is missing or damaged."""
    try:
        opened = open_it()
        return [] if opened is None else rows(opened)
    except CniError as error:
        if error.code not in UNTRUSTED:
            raise
        return []
