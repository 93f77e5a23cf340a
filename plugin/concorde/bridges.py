"""Which bridge may be ours, and who else has its subnet: asked before a network's first pod comes to one.

Of later pods nothing is asked, so no common ADD pays for it.
"""

from __future__ import annotations

from . import addresses, links, names, routing, rtnetlink, state_files
from .cni import DAMAGED, CniError
from .configuration import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .addresses import Subnet
    from .configuration import Identity
    from .node.ledger import Ledger

_DO = (
    "pods may run there: keep that network and list concorde as the last of its plugins, without a subnet, or"
    " drain this node and remove that"
)


class Port:
    """A port of a bridge that is named like one of ours, with the address that its own follows from."""

    def __init__(self, name: str, address: int | None, bridge: str, mtu: int) -> None:
        self.name = name
        self.address = address
        self.bridge = bridge
        self.mtu = mtu


def require_ours(network: Identity, subnet: Subnet, book: Ledger) -> None:
    """Refuse a bridge that is none, and one whose pods the ledger does not know.

    Raises CniError 7 and 107, tools.CommandError.
    """
    if not book.has_pods_on(network.name, network.bridge):
        kind = rtnetlink.link_kind(network.bridge)
        if kind is None:
            return
        if kind != "bridge":
            raise invalid("bridge", f"{network.bridge} is an interface of this node, but not a bridge")
    if not book.knows(network.name, subnet):
        known = {
            lease.link.host_veth
            for key, lease in book.leases().items()
            if lease.link is not None and key[0] == network.name
        }
        unknown = [
            port for name, port in ports().items() if port.bridge == network.bridge and name not in known
        ]
        if unknown:
            listed = ", ".join(addresses.dotted(port.address) for port in unknown[:3] if port.address)
            raise CniError(
                DAMAGED,
                f"{network.node_directory}/{state_files.LEDGER} has no record of {len(unknown)} pods on"
                f" {network.bridge} ({listed}): run concorde rebuild, or delete them",
            )


def ports() -> dict[str, Port]:
    """Every veth of this node that is named like ours. Raises tools.CommandError."""
    return {
        link["ifname"]: Port(
            link["ifname"],
            addresses.of_host_mac(str(link.get("address"))),
            str(link.get("master", "")),
            int(link.get("mtu", 0)),
        )
        for link in links.shown("type", "veth")
        if names.is_host_veth(link["ifname"])
    }


def is_marked(name: str) -> bool:
    """Whether a link is a bridge that this plugin made. Raises OSError.

    The version before gave it no mark but the hardware address that follows from its own address.
    """
    kind, alias, mac = rtnetlink.identity(name)
    if kind != "bridge":
        return False
    if alias == links.ALIAS:
        return True
    index = rtnetlink.index_of(name)
    return mac in [addresses.pod_mac(own.address) for own in routing.addresses() if own.index == index]


def holders(subnet: Subnet, bridge: str) -> list[str]:
    """In words, who else on the node has what pods behind that bridge are to get.

    Two bridges with one subnet, as flannel's own `cni0` and this plugin's, are two ways to the same
    addresses: the kernel takes the older one for all, so who is behind the other gets no answer; and what
    gave addresses there (host-local) knows nothing of those given here. An empty bridge that was left over is
    enough. Raises OSError and tools.CommandError.
    """
    return [*_strangers_ports(bridge), *(_addresses(subnet, bridge) or _routes(subnet, bridge))]


def _strangers_ports(bridge: str) -> list[str]:
    """A bridge of that name which others made, with pods of theirs."""
    if rtnetlink.link_kind(bridge) != "bridge" or is_marked(bridge):
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
    by_name = {rtnetlink.name_of(index): address for index, address in found.items()}
    return [
        f"{holder} has {address}, of these pods' subnet {subnet}; {_DO}"
        for holder, address in by_name.items()
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
