"""What a node knows of the others, and what is to change in its kernel so that it holds just that.

The three generations of flannel, by what is written ahead of any packet:

* nothing: neighbours and forwarding entries are written when the kernel misses them, as by the first flannel;
* forwarding entries (``l2: ahead``): a neighbour for each remote pod is written when the kernel misses it;
* all (``l3: ahead`` too): a route, a neighbour and a forwarding entry for each node, as flannel does today.

An entry that is there and says what no lease does is corrected or taken away in all of them: a node may have
gone, or have come back with another MAC or address.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network
from typing import NamedTuple

from edge import netlink
from edge.overlay.entries import Change, Forwarding, Held, Neighbour, Remove, Route, Set
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


MISS, AHEAD = "miss", "ahead"


class Generation(NamedTuple):
    """When entries are written: ``miss`` or ``ahead``."""

    l2: str = MISS
    l3: str = MISS


def corrections(replica: Replica, generation: Generation, held: Held) -> list[Change]:
    """Return the changes: what is to be comes first, so that nothing goes before its successor is there."""
    changes = [
        *_forwarding(replica, generation, held),
        *_neighbours(replica, generation, held),
        *_routes(replica, generation, held),
    ]
    return sorted(changes, key=lambda change: isinstance(change, Remove))


def _forwarding(replica: Replica, generation: Generation, held: Held) -> Iterator[Change]:
    for mac, address in held.forwarding.items():
        lease = replica.at(mac)
        if lease is None:
            yield Remove(Forwarding(mac, address))
        elif lease.address != address:
            yield Set(Forwarding(mac, lease.address))
    ahead = {lease.mac for lease in replica} if generation.l2 == AHEAD else _successors(replica, held)
    for mac in sorted(ahead - held.forwarding.keys()):
        lease = replica.at(mac)
        if lease is not None:
            yield Set(Forwarding(mac, lease.address))


def _successors(replica: Replica, held: Held) -> set[str]:
    """Return the MACs that VTEPs have now whose former MACs are in use: no packet shall miss them."""
    found = set()
    for address, known in held.neighbours.items():
        lease = replica.holding(address)
        if lease is not None and known.mac != lease.mac and known.mac in held.forwarding:
            found.add(lease.mac)
    return found


def _neighbours(replica: Replica, generation: Generation, held: Held) -> Iterator[Change]:
    ahead = {lease.vtep: lease.mac for lease in replica} if generation.l3 == AHEAD else {}
    for address, known in held.neighbours.items():
        if known.state & netlink.NUD_NOARP or address in ahead:
            continue
        lease = replica.holding(address) if generation.l3 == MISS else None
        if lease is None:
            if known.mac:
                yield Remove(Neighbour(address, known.mac))
        elif known.mac != lease.mac and not known.state & netlink.NUD_FAILED:
            yield Set(Neighbour(address, lease.mac), lasting=False)
    for address, mac in ahead.items():
        if held.neighbours.get(address) != (mac, netlink.NUD_PERMANENT):
            yield Set(Neighbour(address, mac))


def _routes(replica: Replica, generation: Generation, held: Held) -> Iterator[Change]:
    wanted = {lease.subnet: lease.vtep for lease in replica} if generation.l3 == AHEAD else {}
    for subnet, via in held.routes.items():
        if subnet not in wanted:
            yield Remove(Route(subnet, via))
    for subnet, via in wanted.items():
        if held.routes.get(subnet) != via:
            yield Set(Route(subnet, via))
