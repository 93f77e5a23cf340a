"""DEL: take away what ADD made, any number of times, also when nobody knows the pod's namespace any more.

Only the network's identity is read: DEL must not fail because, say, flannel's file is gone.
"""

from __future__ import annotations

from ..configuration import Identity
from .release import release

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..requests import Request


def delete(request: Request) -> None:
    """Detach the pod. Raises CniError, tools.CommandError."""
    network = Identity(request.document)
    release(network, request.container, request.interface, request.netns)
