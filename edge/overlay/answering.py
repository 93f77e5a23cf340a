"""What a resolver knows of the other nodes, and what it therefore writes into its node's kernel.

The three generations of flannel, by what is written ahead of any packet:

* nothing: neighbours and forwarding entries are written when the kernel misses them, as by the first flannel;
* forwarding entries (``l2: ahead``): a neighbour for each remote pod is written when the kernel misses it;
* all (``l3: ahead`` too): a route, a neighbour and a forwarding entry for each node, as flannel does today.

An entry that is there and says what no lease does is corrected or taken away in all of them: a node may have
gone, or have come back with another MAC or address.

Nothing is asked of anybody when the kernel misses an entry: the answer is in the replica, or there is none.
Until the store has said once what there is, nothing is taken away: entries of a resolver before this one lead
their packets on meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network
from typing import NamedTuple, Protocol

from edge import netlink
from edge.overlay.entries import (
    Change,
    Forwarding,
    Held,
    Neighbour,
    NeighbourMessage,
    Remove,
    Route,
    Set,
    read_link,
    read_neighbour,
)
from edge.overlay.leases import Lease

Log = Callable[[str], None]


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


class Kernel(Protocol):
    """A device's entries; see edge.overlay.kernel.Device."""

    index: int
    mac: str

    def held(self) -> Held:
        """Return all that the kernel holds for the device. Raises OSError."""

    def apply(self, change: Change) -> None:
        """Make a change. Raises OSError."""


class DeviceGoneError(Exception):
    """The device is no more, or has another MAC than the lease says."""


class Answering:
    """Keeps a device's entries as the leases justify them; ``amiss`` if something could not be written."""

    def __init__(
        self, kernel: Kernel, replica: Replica, generation: Generation, refresh: bool, log: Log
    ) -> None:
        self.amiss = False
        self._kernel, self._replica = kernel, replica
        self._generation, self._refresh = generation, refresh
        self._log = log

    def heard(self, datagram: bytes) -> None:
        """Answer what the kernel asks; what it says was done is not for us. Raises DeviceGoneError."""
        for kind, _, _, body in netlink.messages(datagram):
            if kind == netlink.RTM_GETNEIGH:
                asked = read_neighbour(body)
                if asked is not None and asked.device == self._kernel.index:
                    self._answer(asked)
            elif kind in (netlink.RTM_NEWLINK, netlink.RTM_DELLINK):
                self._look_at(kind, body)

    def learned(self, leases: Iterable[Lease]) -> None:
        """Take these leases for all there are."""
        if self._replica.replace(leases):
            self.correct()

    def correct(self) -> None:
        """Look at what the kernel has, and correct it, once it is known what is right."""
        if not self._replica.complete:
            return
        self.amiss = False
        try:
            held = self._kernel.held()
        except OSError as error:
            self._log(f"cannot read the kernel's entries: {error}")
            self.amiss = True
            return
        for change in corrections(self._replica, self._generation, held):
            self._apply(change)

    def _answer(self, asked: NeighbourMessage) -> None:
        if asked.address is not None and asked.mac is None:
            self._missed_address(asked.address)
        elif asked.mac is not None and asked.address is None:
            self._missed_mac(asked.mac)
        elif asked.address is not None and self._refresh:
            self._confirm(asked.address)

    def _missed_address(self, address: IPv4Address) -> None:
        begun = time.perf_counter()
        lease = self._replica.holding(address)
        if lease is None:
            self._log(f"L3 miss: {address}: in no node's subnet")
        elif self._apply(Set(Neighbour(address, lease.mac), lasting=False), quietly=True):
            self._log(f"L3 miss: {address}: at {lease.mac}, answered in {_ms(begun)}")

    def _missed_mac(self, mac: str) -> None:
        begun = time.perf_counter()
        lease = self._replica.at(mac)
        if lease is None:
            self._log(f"L2 miss: {mac}: no node's VTEP")
        elif self._apply(Set(Forwarding(mac, lease.address)), quietly=True):
            self._log(f"L2 miss: {mac}: behind {lease.address}, answered in {_ms(begun)}")

    def _confirm(self, address: IPv4Address) -> None:
        lease = self._replica.holding(address)
        if lease is not None:
            self._apply(Set(Neighbour(address, lease.mac), lasting=False), quietly=True)

    def _look_at(self, kind: int, body: bytes) -> None:
        link = read_link(body)
        if link is None or link.device != self._kernel.index:
            return
        if kind == netlink.RTM_DELLINK:
            raise DeviceGoneError(f"device {link.name} is gone")
        if link.mac != self._kernel.mac:
            raise DeviceGoneError(f"device {link.name} has another MAC now: {link.mac}")

    def _apply(self, change: Change, quietly: bool = False) -> bool:
        try:
            self._kernel.apply(change)
        except OSError as error:
            self._log(f"cannot {_shown(change)}: {error}")
            self.amiss = True
            return False
        if not quietly:
            self._log(_shown(change))
        return True


def _shown(change: Change) -> str:
    entry = change.entry
    verb = "remove" if isinstance(change, Remove) else "set"
    if isinstance(entry, Neighbour):
        return f"{verb} neighbour {entry.address} at {entry.mac}"
    if isinstance(entry, Forwarding):
        return f"{verb} {entry.mac} behind {entry.address}"
    return f"{verb} route to {entry.subnet} via {entry.via}"


def _ms(begun: float) -> str:
    return f"{(time.perf_counter() - begun) * 1000:.2f} ms"
