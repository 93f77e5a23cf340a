"""STATUS: could an ADD be served now?"""

from __future__ import annotations

from .. import enforcements, tools
from ..cni import INVALID_CONFIGURATION, NOT_AVAILABLE, CniError, in_words
from ..configuration import Configuration
from ..node import attachments
from ..store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..requests import Request


def status(request: Request, beforehand: bool = False) -> None:
    """Look for the tools, a usable store and a free address. Raises CniError 50, or 7 for a bad key.

    `beforehand` is for a version that is not in its place yet. It leaves store and ledger as the one that is
    there can read them, and does not mind what that one made otherwise.
    """
    configuration = Configuration(request.document)
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
    try:
        attachments.status(configuration, enforcement.on_uplink(configuration), beforehand)
    except OSError as error:
        raise CniError(NOT_AVAILABLE, in_words(error)) from error
    except tools.CommandError as error:
        raise CniError(NOT_AVAILABLE, str(error)) from error
    except CniError as error:
        if error.code == INVALID_CONFIGURATION:
            raise
        raise CniError(NOT_AVAILABLE, error.msg, error.details) from error
    if not configuration.names_subnet:
        return  # it follows another plugin, which gives the addresses
    try:
        subnet, _ = configuration.subnet()
    except CniError as error:
        raise CniError(NOT_AVAILABLE, error.msg) from error
    if store.free_addresses(subnet) <= 0:
        raise CniError(NOT_AVAILABLE, f"all {subnet.size} addresses of subnet {subnet} are in use")
