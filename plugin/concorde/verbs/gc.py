"""GC: drop what belongs to attachments of this network which the runtime no longer knows."""

from __future__ import annotations

from .. import links, names, tools
from ..cni import COMMAND_FAILED, CniError
from ..configuration import Identity
from ..requests import valid_attachments
from ..state_files import WhereWhole
from .delete import opened, release, take_over

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..requests import Attachment, Request


def gc(request: Request) -> None:
    """Remove all stale attachments, going on after an error. Raises CniError with all errors."""
    network = Identity(request.document)
    valid = valid_attachments(request.document)
    take_over(network)
    errors = _release_others(network, _written_down(network), valid)
    errors += _drop_ports(network, valid)
    if errors:
        raise CniError(COMMAND_FAILED, errors[0], "\n".join(errors))


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
