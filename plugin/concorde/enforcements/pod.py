"""Enforcement `pod`: the paper's HTB on the pod's own interface.

It sees all the pod sends and nothing else, so it can limit, but not protect the pod from what others send
on the node's uplink.
"""

from __future__ import annotations

import os

from .. import batches, namespaces, rtnetlink, shaping, tools
from ..cni import CHECK_FAILED, CniError, in_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..configuration import Identity
    from ..leases import Lease
    from ..node.records import Entry

RESERVES = False
RECEIVES = False
TOOLS: tuple[str, ...] = ("tc",)
QDISCS: tuple[str, ...] = ("htb",)
_OURS = 1 << 16, 1  # 1: and its default class


def on_uplink(network: Identity) -> None:
    """Nothing is promised there."""


def absent(network: Identity) -> str:
    """Nothing has to run."""
    return ""


def install(network: Identity, lease: Lease, entry: Entry, netns: str) -> None:
    """Add the qdisc and its class. Raises tools.CommandError, having undone its own half."""
    if lease.terms.rate is None or lease.terms.burst is None:
        return
    try:
        batches.run("tc", shaping.batch(lease.interface, lease.terms.rate, lease.terms.burst), netns)
    except tools.CommandError as failure:
        if failure.line > 1:
            _delete_qdisc(lease.interface, netns)
        raise
    try:
        shorten_packets(lease.interface, shaping.largest_packet(lease.terms.rate), netns)
    except tools.CommandError:
        _delete_qdisc(lease.interface, netns)
        raise


def remove(network: Identity, lease: Lease, netns: str) -> None:
    """Take the shaping off an interface another plugin made; our own takes it along when it goes."""
    if lease.terms.rate is None or lease.link is not None or not os.path.exists(netns):
        return
    try:
        shaped = _has_qdisc(lease.interface, netns)
    except OSError:
        return  # no interface, or no namespace: nothing to undo
    if shaped:
        _delete_qdisc(lease.interface, netns)
        if shaping.largest_packet(lease.terms.rate) < shaping.LARGEST_PACKET:
            _limit_packets(lease.interface, shaping.LARGEST_PACKET, netns)


def check(network: Identity, lease: Lease, netns: str) -> None:
    """Compare qdisc and class with the lease. Raises CniError 104 and tools.CommandError."""
    if lease.terms.rate is None:
        return
    try:
        shaped = _has_qdisc(lease.interface, netns)
    except OSError as error:
        raise CniError(CHECK_FAILED, in_words(error)) from error
    if not shaped:
        raise CniError(CHECK_FAILED, f"{lease.interface} has no root qdisc htb 1: with default class 1")
    output = tools.run("tc", "-j", "class", "show", "dev", lease.interface, netns=netns)
    expected = shaping.shown_rate(lease.terms.rate)
    found = shaping.rates_of_class(output)
    if found != (expected, expected):
        rates = "is missing" if found is None else "has rate {}, ceil {}".format(*found)
        raise CniError(CHECK_FAILED, f"class 1:1 of {lease.interface} {rates}; expected {expected} for both")


def _has_qdisc(interface: str, netns: str) -> bool:
    kernel = namespaces.opened(netns)
    try:
        return rtnetlink.root_htb(rtnetlink.index_of(interface, kernel), kernel) == _OURS
    finally:
        kernel.close()


def shorten_packets(interface: str, largest: int, netns: str) -> None:
    """Keep offloaded packets within a size (bytes) where they would last long. Raises tools.CommandError."""
    if largest < shaping.LARGEST_PACKET:
        _limit_packets(interface, largest, netns)


def _limit_packets(interface: str, size: int, netns: str) -> None:
    batches.run("ip", f"link set dev {interface} gso_max_size {size}\n", netns)


def _delete_qdisc(interface: str, netns: str) -> None:
    batches.run("tc", f"qdisc delete dev {interface} root handle 1:\n", netns)
