"""What a node knows of the others without asking anybody: all leases of its overlay but its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network

from edge.overlay.leases import Lease


class Replica:
    """The leases of the other nodes, as a store said them last; ``complete`` once it has.

    A lease outside the overlay's network, or with what is the node's own, is not of another node: the node
    may have had another subnet before, whose lease goes on until it ends. Nor is one of a part of the node's
    own subnet, by which its own pods would be somewhere else.
    """

    def __init__(self, network: IPv4Network, own: Lease) -> None:
        self.complete = False
        self._network, self._own = network, own
        self._by_subnet: dict[IPv4Network, Lease] = {}
        self._by_mac: dict[str, Lease] = {}
        self._lengths: list[int] = []

    def replace(self, leases: Iterable[Lease]) -> bool:
        """Take these for all there are, those that were written last at the end; tell if that is news."""
        found = {lease.subnet: lease for lease in leases if self._concerns(lease)}
        news = not self.complete or list(found.items()) != list(self._by_subnet.items())
        self.complete = True
        self._by_subnet = found
        self._by_mac = {lease.mac: lease for lease in found.values()}
        self._lengths = sorted({subnet.prefixlen for subnet in found}, reverse=True)
        return news

    def holding(self, address: IPv4Address) -> Lease | None:
        """Return the lease of the smallest subnet that holds an address."""
        for length in self._lengths:
            lease = self._by_subnet.get(IPv4Network((int(address) >> 32 - length << 32 - length, length)))
            if lease is not None:
                return lease
        return None

    def at(self, mac: str) -> Lease | None:
        """Return the lease that says where a VTEP is; of several the last one."""
        return self._by_mac.get(mac)

    def __iter__(self) -> Iterator[Lease]:
        """Return all leases."""
        return iter(self._by_subnet.values())

    def _concerns(self, lease: Lease) -> bool:
        own = self._own
        if lease.subnet.subnet_of(own.subnet) or lease.mac == own.mac or lease.address == own.address:
            return False
        return lease.subnet.subnet_of(self._network)
