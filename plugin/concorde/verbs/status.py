"""STATUS: could an ADD be served now?"""

from __future__ import annotations

from .. import chain, enforcements, state_files, surroundings, tools
from ..cni import INVALID_CONFIGURATION, NOT_AVAILABLE, CniError, in_words, warn
from ..configuration import Configuration
from ..node import attachments
from ..node.ledger import Ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..requests import Request


def status(request: Request, beforehand: bool = False, follows: bool | None = None) -> None:
    """Look for the tools, a usable ledger, suitable surroundings and a free address.

    Raises CniError 50, or 7 for a bad key.

    `beforehand` is for a version that is not in its place yet. It leaves the ledger as the one that is
    there can read it, and does not mind what that one made otherwise. `follows` says whether another plugin
    makes the interface; a runtime does not tell, but who follows names no bridge and no subnet of its own.
    """
    configuration = Configuration(request.document)
    enforcement = enforcements.load(configuration.enforcement)
    if not beforehand:
        chain.require(configuration)
    makes_bridge = configuration.names_bridge if follows is None else not follows
    try:
        for tool in (*tools.TOOLS, *enforcement.TOOLS):
            tools.find(tool)
        if not beforehand:
            state_files.directory(configuration.directory)
            attachments.take_over(configuration.state)
        book = Ledger(configuration.node_directory, reading=beforehand)
        with book:
            pass  # a transaction that writes can begin
        # Without one it follows another plugin, which gives the addresses.
        subnet = configuration.subnet()[0] if configuration.names_subnet else None
    except (CniError, OSError) as error:
        raise CniError(NOT_AVAILABLE, in_words(error)) from error
    if found := _around(configuration, beforehand, makes_bridge):
        raise CniError(NOT_AVAILABLE, "; ".join(found))
    if subnet is not None and book.free_addresses(subnet) <= 0:
        raise CniError(NOT_AVAILABLE, f"all {subnet.size} addresses of subnet {subnet} are in use")
    if absent := enforcement.absent(configuration):
        warn(f"concorde: {configuration.name}: {absent}")


def _around(configuration: Configuration, beforehand: bool, makes_bridge: bool) -> list[str]:
    """What of the node, and of its uplink, is in the way. Raises CniError 7 and 50."""
    try:
        settings = enforcements.load(configuration.enforcement).on_uplink(configuration)
        attachments.status(configuration, settings, beforehand)
        return surroundings.refusals(configuration, settings, makes_bridge)
    except (CniError, OSError, tools.CommandError) as error:
        if isinstance(error, CniError) and error.code == INVALID_CONFIGURATION:
            raise
        raise CniError(NOT_AVAILABLE, in_words(error), getattr(error, "details", "")) from error
