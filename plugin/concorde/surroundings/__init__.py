"""What a node must be like around this plugin: what others made there, and what its kernel can do.

Asked before the first pod of a network comes to a node, at STATUS, and by `examine`; no later ADD pays for
it. Each module answers one question in words that say what to do, and changes nothing.
"""

from __future__ import annotations

from .. import bridges, enforcements
from ..cni import UNSUITABLE, CniError
from ..node import underlay, uplinks
from ..node.messages import rate
from . import features, forwarding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..configuration import Configuration
    from ..node.settings import Settings

LITTLE = 10  # a capacity below this part of the driver's speed is rather a mistake


def require(network: Configuration, settings: Settings | None, makes_bridge: bool) -> None:
    """Refuse the first pod of a network where it, or others, would go without. Raises CniError 109."""
    found = refusals(network, settings, makes_bridge)
    if found:
        raise CniError(UNSUITABLE, "; ".join(found))


def refusals(network: Configuration, settings: Settings | None, makes_bridge: bool) -> list[str]:
    """In words, all that is in the way. In a chain another plugin makes the bridge, whatever subnet is named.

    Raises CniError 7, OSError and tools.CommandError.
    """
    subnet, cluster = network.subnet()[0] if network.names_subnet else None, network.cluster()
    found = features.lacking(enforcements.load(network.enforcement).QDISCS, makes_bridge)
    if settings is not None:
        exits = underlay.of_network(subnet, cluster)
        found += [underlay.complaint(settings.tree.uplink, exits), _too_much(settings)]
    if subnet is not None and makes_bridge:
        found += bridges.holders(subnet, network.bridge)
        found += forwarding.refusals(network.bridge, subnet, cluster)
    return [text for text in found if text]


def notes(network: Configuration, settings: Settings | None, makes_bridge: bool) -> list[str]:
    """In words, what may be meant so, and is worth a second look. Raises as refusals()."""
    found = [_too_little(settings)] if settings is not None else []
    if network.names_subnet and makes_bridge:
        found += forwarding.notes(network.bridge, network.subnet()[0], network.cluster())
    return [text for text in found if text]


def _too_much(settings: Settings) -> str:
    uplink, capacity = settings.tree.uplink, settings.tree.capacity
    speed = uplinks.speed(uplink)
    if speed is None or capacity <= speed:
        return ""
    return (
        f"capacity is {rate(capacity)}, and the driver of {uplink} reports"
        f" {rate(speed)}: write down no more than that, or nothing"
    )


def _too_little(settings: Settings) -> str:
    uplink, capacity = settings.tree.uplink, settings.tree.capacity
    speed = uplinks.speed(uplink)
    if speed is None or capacity * LITTLE >= speed:
        return ""
    return (
        f"capacity is {rate(capacity)}, which all of this node's traffic will have, and the driver"
        f" of {uplink} reports {rate(speed)}"
    )
