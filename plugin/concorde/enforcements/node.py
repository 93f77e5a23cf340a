"""Enforcement `node`: a class for each guarantee in one tree on the node's uplink, shared by all networks.

There the pod's traffic meets all that could crowd it out, so the class is a reservation: a pod gets its
guarantee whatever others send, and idle capacity beyond it. A ceiling is kept on the pod's own interface, as
with enforcement `pod`, and so holds between two pods of one node too, whose traffic never sees the uplink.
"""

from __future__ import annotations

from ..node import htb
from ..node.settings import Settings
from . import pod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..configuration import Configuration, Identity
    from ..leases import Lease
    from ..node.records import Entry

RESERVES = True
RECEIVES = False
TOOLS: tuple[str, ...] = ("tc",)
QDISCS: tuple[str, ...] = ("htb", "tbf", "bfifo")
remove, check = pod.remove, pod.check  # of the ceiling
absent = pod.absent


def on_uplink(network: Configuration) -> Settings | None:
    """The tree that promises are kept in. Raises CniError 7."""
    return Settings(network.document, lambda: network.subnet()[0] if network.names_subnet else None)


def install(network: Identity, lease: Lease, entry: Entry, netns: str) -> None:
    """Keep the ceiling on the pod's interface, and its packets short. The class is there already."""
    pod.install(network, lease, entry, netns)
    if entry.guarantee:
        pod.shorten_packets(lease.interface, htb.largest_packet(entry.rate), netns)
