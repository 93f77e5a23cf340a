"""What is to change in a kernel so that it holds what the leases justify, and nothing else.

The three generations of flannel, by what is written ahead of any packet:

* nothing: neighbours and forwarding entries are written when the kernel misses them, as by the first flannel;
* forwarding entries (``l2: ahead``): a neighbour for each remote pod is written when the kernel misses it;
* all (``l3: ahead`` too): a route, a neighbour and a forwarding entry for each node, as flannel does today.

An entry that is there and says what no lease does is corrected or taken away in all of them: a node may have
gone, or have come back with another MAC or address.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from edge import netlink
from edge.overlay.entries import Change, Forwarding, Held, Neighbour, Remove, Route, Set
from edge.overlay.replica import Replica

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
