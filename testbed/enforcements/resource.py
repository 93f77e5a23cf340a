"""A worker's bandwidth as an extended resource, so that the scheduler knows what fits on no node at all.

It counts what guarantees count: a pod asks for exactly what its annotation says. Each cluster's scheduler
sees the whole of an overlapped worker; what the other cluster holds there only the plugin's ledger knows, and
has the last word.
"""

from __future__ import annotations

from testbed.enforcements.enforcement import Enforcement

RESOURCE = "concorde.contmec.dev/egress"  # bits per second


def offer(enforcement: Enforcement, cluster: str) -> dict[str, str]:
    """Return the resource a worker has to give a cluster; nothing if its link has no known rate."""
    rate = enforcement.capacity(cluster)
    return {} if rate is None else {RESOURCE: str(rate)}


def request(enforcement: Enforcement, cluster: str, guarantee: int | None) -> dict[str, str]:
    """Return the resource a container must ask for to get a guarantee; nothing where none is published."""
    if guarantee is None or enforcement.capacity(cluster) is None:
        return {}
    return {RESOURCE: str(guarantee)}
