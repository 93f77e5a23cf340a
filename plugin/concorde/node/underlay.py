"""By which interface of the node a network's packets leave for pods of other nodes.

A default route does not tell: where nodes have two networks, the overlay may take the other one (flannel's
`--iface`), and a tree on the interface of the default route would be on a link that no pod uses.
"""

from __future__ import annotations

from .. import routing, rtnetlink
from ..configuration import invalid
from . import uplinks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..addresses import Subnet
    from ..rtnetlink import Tunnel


class Exit:
    """What packets are routed into, a VTEP or an interface, and the uplink they leave by; empty: unknown."""

    def __init__(self, device: str, uplink: str) -> None:
        self.device = device
        self.uplink = uplink


def default(subnet: Subnet | None) -> str:
    """The uplink of who wrote down none, with pods of that subnet. Raises CniError 7 and OSError."""
    found = of_overlays(subnet)
    if not found:
        name = uplinks.of_default_route()
        if name is None:
            raise invalid("uplink", "missing, and this node has no default route whose device could be meant")
        return name
    ways = {exit.uplink for exit in found}
    if "" in ways:
        names = ", ".join(exit.device for exit in found if not exit.uplink)
        raise invalid("uplink", f"missing, and the interface by which packets of {names} leave is not known")
    if len(ways) > 1:
        raise invalid("uplink", f"missing, and {_several(found)}; write down the one that these pods' take")
    return ways.pop()


def of_overlays(subnet: Subnet | None) -> list[Exit]:
    """The VTEPs that packets from a subnet may take; without a subnet, all.

    flannel gives its VTEP the first address of the node's subnet. One that has others is somebody else's.
    """
    tunnels = rtnetlink.tunnels()
    if not tunnels:
        return []
    known = routing.addresses()
    if subnet is not None:
        own = {address.index for address in known if address.address in subnet}
        others = {address.index for address in known} - own
        meant = [tunnel for tunnel in tunnels if tunnel.index in own]
        tunnels = meant or [tunnel for tunnel in tunnels if tunnel.index not in others]
    holders = {address.address: address.index for address in known}
    return [Exit(tunnel.device, _lower(tunnel, holders)) for tunnel in tunnels]


def of_network(subnet: Subnet | None, cluster: Subnet | None) -> list[Exit]:
    """The same by the routes to other nodes' pods, where the network is known that all of them are in."""
    if subnet is None or cluster is None:
        return of_overlays(subnet)
    tunnels = {tunnel.index: tunnel for tunnel in rtnetlink.tunnels()}
    holders = {address.address: address.index for address in routing.addresses()}
    own, network = (routing.Block(one.network, one.prefix) for one in (subnet, cluster))
    found = {}
    for route in routing.routes():
        if route.kind != routing.UNICAST or route.table == routing.LOCAL:
            continue
        if not network.holds(route.to) or own.holds(route.to):
            continue
        for index in route.indices:
            device = rtnetlink.name_of(index)
            lower = _lower(tunnels[index], holders) if index in tunnels else _beneath(device, route.gateway)
            found[device] = Exit(device, lower)
    return list(found.values()) or of_overlays(subnet)


def complaint(uplink: str, exits: list[Exit]) -> str:
    """In words, where a tree on the uplink would be on a link that none of these takes; else empty."""
    if not exits or not all(exit.uplink for exit in exits):
        return ""
    if any(exit.uplink == uplink or _carries(uplink, exit.uplink) for exit in exits):
        return ""
    right = " or ".join(sorted({exit.uplink for exit in exits}))
    return f"the uplink is {uplink}, and {_several(exits)}: write down uplink {right}"


def _several(exits: list[Exit]) -> str:
    return " and ".join(f"packets of {exit.device} leave by {exit.uplink}" for exit in exits)


def _lower(tunnel: Tunnel, holders: dict[int, int]) -> str:
    """A VTEP's lower device, or the one that has its own address, or by which the remote one is reached."""
    if tunnel.lower or not (tunnel.local or tunnel.remote):
        return tunnel.lower
    if tunnel.local in holders:
        return rtnetlink.name_of(holders[tunnel.local])
    return routing.device_to(tunnel.remote) if tunnel.remote else ""


def _beneath(device: str, gateway: int) -> str:
    """Of a device that is no VTEP. Where a tunnel of IP goes is said by the route into it."""
    kind = rtnetlink.link_kind(device)
    if kind in ("ipip", "gre"):
        lower = rtnetlink.beneath(device)
        return lower[0] if lower else routing.device_to(gateway) if gateway else ""
    return "" if kind in ("wireguard", "tun", "sit", "ip6tnl", "xfrm") else device


def _carries(uplink: str, device: str) -> bool:
    """Whether all or a part of what a device sends leaves by the uplink: its VLAN's parent, a bond's port."""
    lower = rtnetlink.beneath(device)
    return uplink in lower or any(_carries(uplink, one) for one in lower)
