"""STATUS: could an ADD be served now?"""

from __future__ import annotations

from .. import chain, enforcements, surroundings, tools
from ..cni import INVALID_CONFIGURATION, NOT_AVAILABLE, CniError, in_words
from ..configuration import Configuration
from ..node import attachments
from ..store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..requests import Request


def status(request: Request, beforehand: bool = False, follows: bool | None = None) -> None:
    """Look for the tools, a usable store, suitable surroundings and a free address.

    Raises CniError 50, or 7 for a bad key.

    `beforehand` is for a version that is not in its place yet. It leaves store and ledger as the one that is
    there can read them, and does not mind what that one made otherwise. `follows` says whether another plugin
    makes the interface; a runtime does not tell, but who follows names no bridge and no subnet of its own.
    """
    configuration = Configuration(request.document)
    if not beforehand:
        chain.require(configuration)
    makes_bridge = configuration.names_bridge if follows is None else not follows
    enforcement = enforcements.load(configuration.enforcement)
    try:
        for tool in (*tools.TOOLS, *enforcement.TOOLS):
            tools.find(tool)
        store = Store(configuration.directory, reading=beforehand)
        with store:
            pass  # a transaction that writes can begin
    except CniError as error:
        raise CniError(NOT_AVAILABLE, error.msg) from error
    except OSError as error:
        raise CniError(NOT_AVAILABLE, in_words(error)) from error
    subnet = None
    if configuration.names_subnet:  # or it follows another plugin, which gives the addresses
        try:
            subnet, _ = configuration.subnet()
        except CniError as error:
            raise CniError(NOT_AVAILABLE, error.msg) from error
    try:
        settings = enforcement.on_uplink(configuration)
        attachments.status(configuration, settings, beforehand)
        found = surroundings.refusals(configuration, settings, makes_bridge)
    except OSError as error:
        raise CniError(NOT_AVAILABLE, in_words(error)) from error
    except tools.CommandError as error:
        raise CniError(NOT_AVAILABLE, str(error)) from error
    except CniError as error:
        if error.code == INVALID_CONFIGURATION:
            raise
        raise CniError(NOT_AVAILABLE, error.msg, error.details) from error
    if found:
        raise CniError(NOT_AVAILABLE, "; ".join(found))
    if subnet is not None and store.free_addresses(subnet) <= 0:
        raise CniError(NOT_AVAILABLE, f"all {subnet.size} addresses of subnet {subnet} are in use")
