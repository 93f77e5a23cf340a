"""GC: drop what belongs to attachments of this network which the runtime no longer knows."""

from __future__ import annotations

from .. import links, names, tools
from ..cni import COMMAND_FAILED, CniError, shown
from ..configuration import Identity, invalid
from ..state_files import WhereWhole
from .delete import opened, release, take_over

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..requests import Request

    Attachment = tuple[str, str]  # container and interface

VALID = "cni.dev/valid-attachments"
# The specification's first text had this one; libcni gives both (containernetworking/cni#1103).
KEYS = (VALID, "cni.dev/attachments")


def gc(request: Request) -> None:
    """Remove all stale attachments, going on after an error. Raises CniError with all errors."""
    network = Identity(request.document)
    valid = _valid(request)
    take_over(network)
    errors = _release_others(network, _written_down(network), valid)
    errors += _drop_ports(network, valid)
    if errors:
        raise CniError(COMMAND_FAILED, errors[0], "\n".join(errors))


def _valid(request: Request) -> set[Attachment]:
    """What any of the keys lists."""
    given = [key for key in KEYS if key in request.document]
    # A missing list must not be taken for an empty one: that would cut off every pod.
    if not given:
        raise invalid(VALID, "must be given: a list, or null when there are none")
    return {attachment for key in given for attachment in _listed(key, request.document[key])}


def _listed(key: str, entries: object) -> list[Attachment]:
    if entries is None:  # how Go, and so libcni, writes a list that has nothing
        return []
    if not isinstance(entries, list):
        raise invalid(key, f"{shown(entries)} is not a list")
    for entry in entries:
        if not isinstance(entry, dict) or not (
            _is(names.is_identifier, entry.get("containerID"))
            and _is(names.is_interface, entry.get("ifname"))
        ):
            raise invalid(key, f"{shown(entry)} has no valid containerID and ifname")
    return [(entry["containerID"], entry["ifname"]) for entry in entries]


def _is(rule: Callable[[str], bool], value: object) -> bool:
    return isinstance(value, str) and rule(value)


def _written_down(network: Identity) -> list[Attachment]:
    """The attachments of which the node's ledger tells; other networks' are not ours."""
    with WhereWhole():
        book = opened(network)
        return [key[1:] for key in book.keys(network.name)] if book is not None else []
    return []


def _release_others(network: Identity, found: Iterable[Attachment], valid: set[Attachment]) -> list[str]:
    errors = []
    for container, interface in found:
        if (container, interface) in valid:
            continue
        try:
            release(network, container, interface, netns="")
        except tools.CommandError as failure:
            errors.append(str(failure))
    return errors


def _drop_ports(network: Identity, valid: set[Attachment]) -> list[str]:
    """Drop veths on this network's bridge that no lease tells of: somebody removed the ledger."""
    if not links.exists(network.bridge):
        return []
    errors = []
    kept = {names.host_veth(network.name, *attachment) for attachment in valid}
    try:
        for name in (port["ifname"] for port in links.shown("master", network.bridge)):
            if names.is_host_veth(name) and name not in kept:
                _drop_port(network, name)
    except tools.CommandError as failure:
        errors.append(str(failure))
    return errors


def _drop_port(network: Identity, name: str) -> None:
    links.remove(name)
    book = opened(network)
    if book is None:
        from ..node import remains

        remains.forget({name})
        return
    with WhereWhole(), book:
        book.drop((network.name, "", ""), name)
