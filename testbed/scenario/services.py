"""Where a cluster's services have their addresses: in a range of the cluster's own."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network

from testbed.scenario.model import Scenario

# Kubernetes' usual one, then the next ones of as many addresses.
FIRST, USUAL_PREFIX = IPv4Network("10.96.0.0/16"), 16
END = IPv4Network("10.0.0.0/8")
# What a kube-apiserver takes: no more than 20 bits (its validateClusterIPFlags), no fewer than 3.
SHORTEST_PREFIX, LONGEST_PREFIX = 12, 29


def ranges(scenario: Scenario) -> dict[str, IPv4Network]:
    """Return each cluster's range: what it says, else the next usual one in which nobody else has addresses.

    Where pods have all of them it is the first, in which services cannot be reached then.
    """
    taken = [scenario.underlay.cidr, scenario.container_cidr]
    for cluster in scenario.clusters.values():
        taken += [*cluster.pod_networks, *([cluster.service_cidr] if cluster.service_cidr else [])]
    found = {}
    for name, cluster in scenario.clusters.items():
        found[name] = cluster.service_cidr or _next(taken)
        taken.append(found[name])
    return found


def _next(taken: Iterable[IPv4Network]) -> IPv4Network:
    usual = END.subnets(new_prefix=USUAL_PREFIX)
    free = (one for one in usual if one >= FIRST and not any(map(one.overlaps, taken)))
    return next(free, FIRST)
