"""Whether anybody else on the node has the pods' subnet, its gateway, or an address of it.

Two bridges with one subnet, as flannel's own `cni0` and this plugin's, are two ways to the same addresses:
the kernel takes the older one for all, so who is behind the other gets no answer; and what gave addresses
there (host-local) knows nothing of those given here. An empty bridge that was left over is enough.
"""

from __future__ import annotations

from .. import bridges, links, names, routing, rtnetlink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..addresses import Subnet

_DO = (
    "pods may run there: keep that network and list concorde as the last of its plugins, without a subnet, or"
    " drain this node and remove that"
)


def of(subnet: Subnet, bridge: str) -> list[str]:
    """In words, who has what pods behind that bridge are to get. Raises OSError and tools.CommandError."""
    return [*_strangers_ports(bridge), *(_addresses(subnet, bridge) or _routes(subnet, bridge))]


def _strangers_ports(bridge: str) -> list[str]:
    """A bridge of that name which others made, with pods of theirs."""
    if rtnetlink.link_kind(bridge) != "bridge" or bridges.is_marked(bridge):
        return []
    ports = [
        link["ifname"]
        for link in links.shown("master", bridge)
        if link.get("linkinfo", {}).get("info_kind") == "veth" and not names.is_host_veth(link["ifname"])
    ]
    return [f"the bridge {bridge} has ports of others ({', '.join(ports[:3])}); {_DO}"] if ports else []


def _addresses(subnet: Subnet, bridge: str) -> list[str]:
    """A VTEP may have the subnet's first address, which no pod gets, alone: flannel's has."""
    own = routing.Block(subnet.network, subnet.prefix)
    found: dict[int, routing.Address] = {}
    for address in routing.addresses():
        is_way = address.prefix < 32 and own.holds(address.block)
        if is_way or subnet.network < address.address < subnet.broadcast:
            found.setdefault(address.index, address)
    holders = {rtnetlink.name_of(index): address for index, address in found.items()}
    return [
        f"{holder} has {address}, of these pods' subnet {subnet}; {_DO}"
        for holder, address in holders.items()
        if holder != bridge
    ]


def _routes(subnet: Subnet, bridge: str) -> list[str]:
    """Routes that come before the bridge's own: to a part of the subnet, or as short a way to all of it."""
    own = routing.Block(subnet.network, subnet.prefix)
    for route in routing.routes():
        if route.table != routing.MAIN or not own.holds(route.to):
            continue
        if route.to.prefix == own.prefix and route.metric:
            continue
        devices = [rtnetlink.name_of(index) for index in route.indices]
        # Of what nobody may get, flannel's VTEP has a route too.
        if bridge not in devices and not _is_reserved(route.to, subnet):
            via = " and ".join(devices) or "nowhere"
            return [f"a route leads {route.to}, of these pods' subnet {subnet}, to {via}; {_DO}"]
    return []


def _is_reserved(block: routing.Block, subnet: Subnet) -> bool:
    return block.prefix == 32 and block.first in subnet.reserved
