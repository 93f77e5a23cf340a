"""A worker's bandwidth as an extended resource, so that the scheduler knows what fits on no node at all.

It counts what guarantees count: a pod asks for exactly what its annotation says. Each cluster's scheduler
sees the whole of an overlapped worker; what the other cluster holds there only the plugin's ledger knows, and
has the last word.
"""

from __future__ import annotations

from testbed.enforcements import concorde
from testbed.scenario import Scenario, addressing

RESOURCE = "concorde.contmec.dev/egress"  # bits per second
RESERVE = 0.02  # the plugin's default: docs/node-enforcement.md, "Configuration keys"
ETHERNET_HEADER = 14
TCP_HEADERS = 52  # IPv4 20 + TCP 32 bytes with timestamps


def capacity(scenario: Scenario) -> int | None:
    """Return what a worker can promise, bits per second; None if its link has no known rate."""
    rate = scenario.underlay.rate
    if rate is None:
        return None
    if scenario.enforcement != "node":
        return rate
    mtu = addressing.pod_mtu(scenario)
    frame = mtu + ETHERNET_HEADER
    counted = frame if scenario.count == "layer2" else mtu - TCP_HEADERS
    on_uplink = round(rate * concorde.NODE_SHARE) * (1 - RESERVE)
    return int(on_uplink * counted / (frame + addressing.ENCAPSULATION_BYTES))


def offer(scenario: Scenario) -> dict[str, str]:
    """Return the resource a worker has to give; nothing if its link has no known rate."""
    rate = capacity(scenario)
    return {} if rate is None else {RESOURCE: str(rate)}


def request(scenario: Scenario, guarantee: int | None) -> dict[str, str]:
    """Return the resource a container must ask for to get a guarantee; nothing where none is published."""
    if guarantee is None or capacity(scenario) is None:
        return {}
    return {RESOURCE: str(guarantee)}
