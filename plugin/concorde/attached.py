"""Which attachments live, and what was promised them: from runtimes' caches, the kernel, and a whole ledger.

What was promised stands in the caches; which address a pod has, in the kernel, as the hardware address of the
node's end follows from it, and that end's name from the attachment. A row of a whole ledger is believed where
no cache tells of the attachment: its runtime may not have written that yet.
"""

from __future__ import annotations

from . import addresses, enforcements, guarantees, host_interfaces, names
from .configuration import Configuration, invalid
from .leases import Lease, Link

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .bridges import Port
    from .cache import Kept
    from .host_interfaces import Found
    from .leases import Terms
    from .node.records import Key


class Attached:
    """An attachment whose pod lives, and its network's configuration if a cache told it.

    `found` is its interface if another plugin made it, and `netns` the file of its namespace.
    """

    def __init__(
        self,
        network: str,
        lease: Lease,
        configuration: Configuration | None,
        found: Found | None = None,
        netns: str = "",
    ) -> None:
        self.network = network
        self.lease = lease
        self.configuration = configuration
        self.found = found
        self.netns = netns

    @property
    def key(self) -> Key:
        """What names the attachment on this node."""
        return self.network, self.lease.container, self.lease.interface

    def shares_an_end(self, other: Attached) -> bool:
        """Whether both have one interface, of which only one can be."""
        ends = [one.found.end.index for one in (self, other) if one.found is not None and one.found.end]
        return len(ends) == 2 and ends[0] == ends[1]

    def change(self, now: Terms, said: Mapping[str, int | None]) -> None:
        """Let it have what it has by now, as for guarantees.terms_by_now(). Raises CniError 7."""
        if self.configuration is not None:
            mtu = self.lease.mtu(self.configuration)
            own = self.configuration, mtu, *_keeps(self.configuration)
            self.lease.terms = guarantees.terms_by_now(*own, now, said)

    @property
    def who(self) -> str:
        """The attachment for people."""
        return f"{self.network} {self.lease.pod or self.lease.container}"


def of_cache(network: str, kept: Kept, ports: dict[str, Port]) -> Attached | None:
    """The attachment that a cache tells of, if it lives. Raises CniError 7 when nothing can be made of it."""
    configuration = Configuration(kept.document)
    link = found = None
    if kept.follows:
        found = host_interfaces.of(configuration.previous, kept.interface, kept.netns)
        if not (found.index or found.end) and host_interfaces.listed(configuration.previous):
            return None  # neither its namespace is there, nor an end that leads to it
        mtu = configuration.node_mtu()
    else:
        link = _link(network, kept, configuration, ports)
        if link is None:
            return None
        mtu = link.mtu
    terms = guarantees.terms(configuration, mtu, *_keeps(configuration))
    lease = Lease(kept.container, kept.interface, terms, link, kept.pod)
    return Attached(network, lease, configuration, found, kept.netns)


def _keeps(configuration: Configuration) -> tuple[bool, bool]:
    enforcement = enforcements.load(configuration.enforcement)
    return enforcement.RESERVES, enforcement.RECEIVES


def of_row(network: str, lease: Lease, ports: dict[str, Port]) -> Attached | None:
    """The attachment of a lease, if the kernel has the link it tells of.

    Of an interface that another plugin made it tells none; that one lives until GC.
    """
    if lease.link is not None:
        port = ports.get(names.host_veth(network, lease.container, lease.interface))
        if port is None or port.address not in (None, lease.link.address):
            return None
    return Attached(network, lease, None)


def nobodys(alive: list[Attached], ports: dict[str, Port]) -> list[Link]:
    """Ports beside these attachments' own of which nobody tells whose they are."""
    ours = [one.lease.link for one in alive if one.lease.link is not None]
    taken = {link.host_veth for link in ours}
    subnets = {link.bridge: link.subnet for link in ours}
    return [
        Link("", port.mtu, port.address, subnets[port.bridge], port.bridge, name)
        for name, port in ports.items()
        if name not in taken
        and port.bridge in subnets
        and port.address is not None
        and port.address in subnets[port.bridge]
    ]


def _link(network: str, kept: Kept, configuration: Configuration, ports: dict[str, Port]) -> Link | None:
    veth = names.host_veth(network, kept.container, kept.interface)
    port = ports.get(veth)
    if port is None:
        return None
    if port.address is None:
        raise invalid("result", f"the hardware address of {veth} does not tell the pod's address")
    for text in kept.addresses:
        try:
            address, subnet = addresses.parse_interface(text)
        except ValueError:
            continue
        if address == port.address:
            return Link(kept.interface, port.mtu, address, subnet, port.bridge or configuration.bridge, veth)
    subnet = configuration.subnet()[0]
    return Link(kept.interface, port.mtu, port.address, subnet, port.bridge or configuration.bridge, veth)
