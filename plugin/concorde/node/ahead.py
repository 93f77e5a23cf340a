"""What an ADD has ready before the node is changed: the keys of the uplink and the node's lock.

Apart from `attachments`, which is loaded while the tools are at work already.
"""

from __future__ import annotations

from .. import enforcements
from ..locks import NodeLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..configuration import Configuration
    from .settings import Settings


class Ready:
    """Both; the tools that are started from now on hold the lock from the moment that is taken."""

    def __init__(self, network: Configuration) -> None:
        """Read the keys and open the lock. Raises CniError 7."""
        self.settings: Settings | None = enforcements.load(network.enforcement).on_uplink(network)
        self.lock = NodeLock(network.node_directory)
