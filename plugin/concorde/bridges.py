"""Which bridge may be ours: what is asked before the first pod of a network comes to one.

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
    from .store import Store


class Port:
    """A port of a bridge that is named like one of ours, with the address that its own follows from."""

    def __init__(self, name: str, address: int | None, bridge: str, mtu: int) -> None:
        self.name = name
        self.address = address
        self.bridge = bridge
        self.mtu = mtu


def require_ours(network: Identity, subnet: Subnet, store: Store) -> None:
    """Refuse a bridge that is none, and one whose pods the store does not know.

    Raises CniError 7 and 107, tools.CommandError.
    """
    if not store.has_pods_on(network.bridge):
        kind = rtnetlink.link_kind(network.bridge)
        if kind is None:
            return
        if kind != "bridge":
            raise invalid("bridge", f"{network.bridge} is an interface of this node, but not a bridge")
    if not store.knows(subnet):
        known = {lease.link.host_veth for lease in store.leases() if lease.link is not None}
        unknown = [
            port for name, port in ports().items() if port.bridge == network.bridge and name not in known
        ]
        if unknown:
            listed = ", ".join(addresses.dotted(port.address) for port in unknown[:3] if port.address)
            raise CniError(
                DAMAGED,
                f"{network.directory}/{state_files.STORE} has no record of {len(unknown)} pods on"
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
