"""What a resolver does with what it hears: from the kernel, and from its store.

Nothing is asked of anybody when the kernel misses an entry: the answer is in the replica, or there is none.
Until the store has said once what there is, nothing is taken away: entries of a resolver before this one lead
their packets on meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from ipaddress import IPv4Address
from typing import Protocol

from edge import netlink
from edge.overlay.corrections import Generation, Replica, corrections
from edge.overlay.entries import (
    Change,
    Forwarding,
    Held,
    Neighbour,
    NeighbourMessage,
    Remove,
    Set,
    read_link,
    read_neighbour,
)
from edge.overlay.leases import Lease

Log = Callable[[str], None]


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
