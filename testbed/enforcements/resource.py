"""A worker's bandwidth as an extended resource, so that the scheduler knows what fits on no node at all.

It counts what guarantees count: a pod asks for exactly what its annotations say. Each cluster's scheduler
sees the whole of an overlapped worker; what the other cluster holds there only the plugin's ledger knows, and
has the last word.
"""

from __future__ import annotations

from testbed.enforcements.enforcement import Enforcement
from testbed.scenario import Pod

RESOURCE = "concorde.contmec.dev/egress"  # bits per second


def offer(enforcement: Enforcement, cluster: str, node: str) -> dict[str, str]:
    """Return the resource a worker has to give a cluster; nothing if its link has no known rate."""
    rate = enforcement.capacity(cluster, node)
    return {} if rate is None else {RESOURCE: str(rate)}


def request(enforcement: Enforcement, pod: Pod) -> dict[str, str]:
    """Return the resource a pod's container must ask for; nothing where none is published."""
    if not pod.promised or enforcement.capacity(pod.cluster, pod.node) is None:
        return {}
    return {RESOURCE: str(pod.promised)}
