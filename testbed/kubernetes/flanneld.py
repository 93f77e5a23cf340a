"""The real flanneld, one for each cluster on each of its nodes, instead of the entries the testbed makes.

Each has a VNI, a UDP port, a subnet file and a configuration of its own, all the scenario's, so two of them
get on with each other on a worker of two clusters. The nodes' pod subnets they learn from the API, where they
are the scenario's too (testbed.kubernetes.manifests). They write no iptables rules: pods talk to pods alone,
and nothing on a node forbids it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from testbed.access.components import Component
from testbed.access.place import Node, in_parallel
from testbed.kubernetes import manifests
from testbed.kubernetes.control_plane import ControlPlane, Subject, directory_of
from testbed.kubernetes.manifests import Manifest
from testbed.overlays.daemons import wait_until_joined
from testbed.overlays.registry import of_cluster
from testbed.scenario.addressing import Addressing
from testbed.scenario.faults import Fault

USER = "flannel"


def refused(addressing: Addressing) -> Iterator[Fault]:
    """Yield the backends that flanneld does not know."""
    for name, cluster in addressing.scenario.clusters.items():
        if of_cluster(addressing, name).flannel() is None:
            text = f"flanneld has no backend {cluster.backend}: ./invokew kubernetes.get --flannel none"
            yield Fault(("clusters", name, "backend"), text)


def render_network(addressing: Addressing, cluster: str) -> str:
    """Return a cluster's ``net-conf.json``; its backend is one that flanneld knows."""
    backend = of_cluster(addressing, cluster).flannel()
    network = addressing.flannel_network(cluster)
    return json.dumps({"Network": str(network), "Backend": backend}, indent=1)


def arguments(addressing: Addressing, cluster: str, node: str) -> list[str]:
    """Return flanneld's arguments on a node of a cluster."""
    directory = directory_of(cluster)
    return [
        "--kube-subnet-mgr",
        f"--kubeconfig-file={directory}/flanneld.conf",
        f"--net-config-path={directory}/net-conf.json",
        f"--iface={addressing.uplink(node)}",
        f"--public-ip={addressing.address(node)}",
        f"--subnet-file={addressing.subnet_file(cluster)}",
        "--ip-masq=false",
        "--iptables-forward-rules=false",
    ]


def render_manifests(addressing: Addressing, cluster: str) -> list[Manifest]:
    """Return what flanneld needs of an API: rights, and a node with a subnet for the master as well."""
    rules = [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
    ]
    return [*manifests.allowed(USER, rules), manifests.master(addressing, cluster)]


class Flannel:
    """One cluster's overlay, made by a flanneld on each of its nodes."""

    def __init__(
        self, addressing: Addressing, cluster: str, nodes: Mapping[str, Node], program: Path
    ) -> None:
        self.cluster = cluster
        self._addressing = addressing
        self._network = of_cluster(addressing, cluster)
        self._nodes = {name: nodes[name] for name in addressing.members(cluster)}
        self._flannelds = {
            name: Component(
                f"flanneld of cluster {cluster}",
                node,
                f"{directory_of(cluster)}/flanneld",
                [str(program), *arguments(addressing, cluster, name)],
                env={"NODE_NAME": manifests.name_of(name)},
            )
            for name, node in self._nodes.items()
        }

    @property
    def components(self) -> list[Component]:
        """What must be running."""
        return list(self._flannelds.values())

    @property
    def manifests(self) -> list[Manifest]:
        """What the API must be told first."""
        return render_manifests(self._addressing, self.cluster)

    def up(self, control_plane: ControlPlane) -> None:
        """Start them, and wait until they have joined all nodes. Raises ComponentError."""
        kubeconfig = control_plane.kubeconfig(Subject(USER))
        in_parallel(lambda name: self._start(name, kubeconfig), self._nodes)
        wait_until_joined(self._lacking, self.components)

    def faults(self) -> list[str]:
        """Return, in words, what is no longer there of all that joins the nodes."""
        return [f"the overlay of cluster {self.cluster} lacks, on {text}" for text in self._lacking()]

    def _lacking(self) -> list[str]:
        return self._network.lacking(self._nodes)

    def _start(self, name: str, kubeconfig: str) -> None:
        node, directory = self._nodes[name], directory_of(self.cluster)
        node.run(
            ["tee", f"{directory}/net-conf.json"],
            stdin=render_network(self._addressing, self.cluster),
        )
        node.run(["tee", f"{directory}/flanneld.conf"], stdin=kubeconfig)
        self._flannelds[name].start()
