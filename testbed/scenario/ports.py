"""Which TCP ports Kubernetes has on a node, where several clusters may have one."""

from __future__ import annotations

from testbed.scenario.addressing import Addressing

SSH_PORT = 22
ETCD_PORT, API_PORT = 2379, 6443
KUBELET_PORT, HEALTH_PORT, NEXT_CLUSTER = 10250, 10248, 10000


def position(addressing: Addressing, cluster: str) -> int:
    """Return how many earlier clusters have the same master: those have the usual ports."""
    clusters = addressing.scenario.clusters
    master = clusters[cluster].master
    same = [name for name, other in clusters.items() if other.master == master]
    return same.index(cluster)


def api(addressing: Addressing, cluster: str) -> int:
    """Return the port of a cluster's API server."""
    return API_PORT + position(addressing, cluster)


def beside(addressing: Addressing, cluster: str, node: str) -> int:
    """Return what is added to the ports of a cluster's kubelet, to keep a node's kubelets apart."""
    return addressing.clusters_of(node).index(cluster) * NEXT_CLUSTER


def control(addressing: Addressing, node: str) -> list[int]:
    """Return the ports that must be reached if a node is to be repaired, or its pods are to be found.

    They are sshd's, the API servers', its kubelets' and those of its pod networks' daemons.
    """
    scenario, clusters = addressing.scenario, addressing.clusters_of(node)
    kubelets = [KUBELET_PORT + beside(addressing, cluster, node) for cluster in clusters]
    daemons = {port for name in clusters for port in addressing.network(name).control_ports(scenario, name)}
    apis = {api(addressing, cluster) for cluster in clusters}
    return [SSH_PORT, *sorted(apis), *kubelets, *sorted(daemons)]
