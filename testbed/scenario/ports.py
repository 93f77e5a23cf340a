"""Which TCP ports Kubernetes has on a node, where several clusters may have one."""

from __future__ import annotations

from testbed.scenario import Scenario, addressing

SSH_PORT = 22
ETCD_PORT, API_PORT = 2379, 6443
KUBELET_PORT, HEALTH_PORT, NEXT_CLUSTER = 10250, 10248, 10000


def position(scenario: Scenario, cluster: str) -> int:
    """Return how many earlier clusters have the same master: those have the usual ports."""
    master = scenario.clusters[cluster].master
    same = [name for name, other in scenario.clusters.items() if other.master == master]
    return same.index(cluster)


def api(scenario: Scenario, cluster: str) -> int:
    """Return the port of a cluster's API server."""
    return API_PORT + position(scenario, cluster)


def beside(scenario: Scenario, cluster: str, node: str) -> int:
    """Return what is added to the ports of a cluster's kubelet, to keep a node's kubelets apart."""
    return addressing.clusters_of(scenario, node).index(cluster) * NEXT_CLUSTER


def control(scenario: Scenario, node: str) -> list[int]:
    """Return the ports that must be reached if a node is to be repaired: sshd, API servers, its kubelets."""
    clusters = addressing.clusters_of(scenario, node)
    kubelets = [KUBELET_PORT + beside(scenario, cluster, node) for cluster in clusters]
    return [SSH_PORT, *sorted({api(scenario, cluster) for cluster in clusters}), *kubelets]
