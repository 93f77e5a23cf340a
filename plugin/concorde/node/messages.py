"""What the ledger says to people: who holds what, and why a promise is refused."""

from __future__ import annotations

from .. import addresses
from ..leases import INGRESS
from .records import promised

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .records import Entry, Tree

_MOST_NAMED = 3  # the message ends up in the pod's events, where nobody reads a long list


def rate(value: int) -> str:
    """A rate (bits per second) for people: three or more digits, rounded down."""
    for unit, size in (("Tbit/s", 10**12), ("Gbit/s", 10**9), ("Mbit/s", 10**6), ("kbit/s", 10**3)):
        if value >= size:
            return f"{value * 1000 // size / 1000:g} {unit}"
    return f"{value} bit/s"


def refusal(tree: Tree, entries: list[Entry], wanted: Entry) -> str:
    """Why a promise does not fit: what is free, what it needs, who holds the rest."""
    free = max(0, tree.promisable - promised(entries, tree.direction))
    return (
        f"no room for a guarantee of {_asked(tree, wanted)} on {tree.uplink}: it takes"
        f" {rate(wanted.takes(tree.direction))} there, and {rate(free)} of {rate(tree.promisable)} are free;"
        f" {_holders(tree, entries)}"
    )


def _asked(tree: Tree, wanted: Entry) -> str:
    if tree.direction == INGRESS:
        return f"{rate(wanted.ingress or 0)} for what is received"
    asked = [rate(wanted.guarantee)] if wanted.guarantee else []
    asked += [f"{rate(wanted.answers)} for answers"] if wanted.answers else []
    return " and ".join(asked)


def shrunk(tree: Tree, entries: list[Entry]) -> str:
    """Why a smaller capacity, or a greater reserve, cannot be taken on."""
    received = " for what is received" if tree.direction == INGRESS else ""
    return (
        f"{rate(promised(entries, tree.direction))} are promised on {tree.uplink}{received}, more than the"
        f" {rate(tree.promisable)} that this configuration leaves (capacity less reserve);"
        f" {_holders(tree, entries)}"
    )


def contradiction(former: Tree, tree: Tree, holders: set[str]) -> str:
    """Why a configuration cannot be taken on beside the one in use."""
    differing = [
        f"{key} {value} here, {former.configured[key]} there"
        for key, value in tree.configured.items()
        if value != former.configured[key]
    ]
    return (
        f"this configuration differs from the one that the guarantees of {_listed(sorted(holders))} on"
        f" this node rely on: {'; '.join(differing)}"
    )


def taken(entry: Entry, entries: list[Entry]) -> str:
    """Why an attachment cannot be written down a second time."""
    for other in entries:
        if other.address is not None and other.address == entry.address and other.key != entry.key:
            return f"address {addresses.dotted(other.address)} belongs to {other.who} already"
    return f"container {entry.container} has {entry.interface} in the node's ledger already"


def _holders(tree: Tree, entries: list[Entry]) -> str:
    taking = [(entry.takes(tree.direction), entry) for entry in entries]
    holding = [entry for takes, entry in sorted(taking, key=lambda one: -one[0]) if takes]
    if not holding:
        return "nobody holds any"
    networks = []
    for network in sorted({entry.network for entry in holding}):
        of_network = [entry for entry in holding if entry.network == network]
        pods = "1 pod" if len(of_network) == 1 else f"{len(of_network)} pods"
        networks.append(f"{network} {rate(promised(of_network, tree.direction))} ({pods})")
    largest = ", ".join(
        f"{entry.who[:80]} {rate(entry.takes(tree.direction))}" for entry in holding[:_MOST_NAMED]
    )
    return f"held by {_listed(networks)}; most by {largest}"


def _listed(names: Iterable[str]) -> str:
    listed = [name[:80] for name in names]
    rest = len(listed) - _MOST_NAMED
    return ", ".join(listed[:_MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")
