"""Which addresses a cluster's pods get on a node: those of its subnet there, or a range of the underlay.

A range of the underlay is a part of its upper half, as large for each cluster and worker; nodes have their
addresses in the lower one.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import NamedTuple

from testbed.scenario.model import Scenario


class PodRange(NamedTuple):
    """Addresses of pods, from the first to the last, and the network they are in."""

    subnet: IPv4Network
    gateway: IPv4Address
    first: IPv4Address
    last: IPv4Address

    @property
    def room(self) -> int:
        """How many pods it has addresses for."""
        return int(self.last) - int(self.first) + 1


def of_subnet(subnet: IPv4Network) -> PodRange:
    """Return the range of a subnet of a node's own: all but its own address, the gateway's, the broadcast."""
    return PodRange(subnet, subnet[1], subnet[2], subnet[-2])


def of_underlay(scenario: Scenario, cluster: str, node: str, gateway: IPv4Address) -> PodRange:
    """Return the range of the underlay for a cluster's pods on one of its workers."""
    underlay = scenario.underlay.cidr
    pairs = [(name, worker) for name, one in scenario.clusters.items() for worker in one.workers]
    first = first_of_pods(underlay)
    size = (int(underlay.broadcast_address) - int(first)) // len(pairs)
    begin = first + size * pairs.index((cluster, node))
    return PodRange(underlay, gateway, begin, begin + size - 1)


def first_of_pods(underlay: IPv4Network) -> IPv4Address:
    """Return the first address of an underlay's upper half."""
    return underlay[underlay.num_addresses // 2]
