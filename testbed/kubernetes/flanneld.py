"""The real flanneld, one for each cluster on each of its nodes, instead of the entries the testbed makes.

Each has a VNI, a UDP port, a subnet file and a configuration of its own, all the scenario's, so two of them
get on with each other on a worker of two clusters. The nodes' pod subnets they learn from the API, where they
are the scenario's too (testbed.kubernetes.manifests). They write no iptables rules: pods talk to pods alone,
and nothing on a node forbids it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.access.components import Component, ComponentError
from testbed.access.place import Node, in_parallel
from testbed.kubernetes import manifests
from testbed.kubernetes.certificates import Subject
from testbed.kubernetes.control_plane import ControlPlane, directory_of
from testbed.kubernetes.manifests import Manifest
from testbed.networks import vxlan
from testbed.scenario import Scenario
from testbed.scenario.addressing import Addressing

USER = "flannel"
JOINED_SECONDS = 120.0
AGAIN_SECONDS = 0.1


def render_network(scenario: Scenario, cluster: str) -> str:
    """Return a cluster's ``net-conf.json``."""
    own = scenario.clusters[cluster]
    backend = {"Type": "vxlan", "VNI": own.flannel.vni, "Port": own.flannel.port}
    return json.dumps({"Network": str(own.pod_cidr), "Backend": backend}, indent=1)


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
    group = "rbac.authorization.k8s.io"
    rules = [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
    ]
    role: Manifest = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": USER},
        "rules": rules,
    }
    binding: Manifest = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": USER},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": USER},
        "subjects": [{"apiGroup": group, "kind": "User", "name": USER}],
    }
    return [role, binding, manifests.master(addressing, cluster)]


@dataclass(frozen=True)
class Seen:
    """What a node has of one cluster's overlay, in words that can be compared."""

    mac: str = ""  # of its VTEP
    words: frozenset[str] = frozenset()


def lacking(overlay: vxlan.Overlay, seen: Mapping[str, Seen]) -> list[str]:
    """Return, in words and with its node, what is not there that the testbed would have made itself."""
    macs = {node: one.mac for node, one in seen.items()}
    return [
        f"{node}: {words}"
        for node, one in seen.items()
        for words in _wanted(overlay, node, macs)
        if words not in one.words
    ]


def _wanted(overlay: vxlan.Overlay, node: str, macs: Mapping[str, str]) -> Iterator[str]:
    addressing, cluster = overlay.addressing, overlay.cluster
    yield from overlay.subnet_env(node).splitlines()
    own, address = addressing.scenario.clusters[cluster].flannel, addressing.address(node)
    yield _vtep(own.vni, own.port, str(address), addressing.uplink(node), addressing.pod_mtu(cluster))
    for remote in overlay.remotes(node):
        mac = macs[remote.node]
        yield _neighbour(str(remote.vtep), mac)
        yield _forwarding(mac, str(remote.address))
        yield _route(str(remote.subnet), str(remote.vtep))


def look(node: Node, subnet_file: str, vtep: str) -> Seen:
    """Return what a node has; nothing until flanneld has written its file, which it does after the VTEP."""
    written = node.run(["cat", subnet_file], check=False).stdout
    shown = node.run(["ip", "-d", "-j", "link", "show", "dev", vtep], check=False) if written else None
    if shown is None or shown.status != 0:
        return Seen()
    (link,) = shown.json()
    made = link["linkinfo"]["info_data"]
    words = [
        *written.splitlines(),
        _vtep(made["id"], made["port"], made["local"], made["link"], link["mtu"]),
    ]
    for route in node.run(["ip", "-j", "route", "show", "dev", vtep]).json():
        words.append(_route(route["dst"], route.get("gateway", "")))
    for entry in node.run(["ip", "-j", "neighbour", "show", "dev", vtep, "nud", "permanent"]).json():
        words.append(_neighbour(entry["dst"], entry.get("lladdr", "")))
    for entry in node.run(["bridge", "-j", "fdb", "show", "dev", vtep]).json():
        words.append(_forwarding(entry["mac"], entry.get("dst", "")))
    return Seen(link["address"], frozenset(words))


def _vtep(vni: int, port: int, address: str, uplink: str, mtu: int) -> str:
    return f"a VTEP with VNI {vni}, UDP port {port}, {address} on {uplink} and an MTU of {mtu} bytes"


def _route(subnet: str, via: str) -> str:
    return f"a route to {subnet} via {via}"


def _neighbour(address: str, mac: str) -> str:
    return f"neighbour {address} at {mac or 'a VTEP that is not there'}"


def _forwarding(mac: str, address: str) -> str:
    return f"{mac or 'a VTEP that is not there'} behind {address}"


class Flannel:
    """One cluster's overlay, made by a flanneld on each of its nodes."""

    def __init__(
        self, addressing: Addressing, cluster: str, nodes: Mapping[str, Node], program: Path
    ) -> None:
        self.cluster = cluster
        self._overlay = vxlan.Overlay(addressing, cluster)
        self._nodes = {name: nodes[name] for name in addressing.scenario.clusters[cluster].nodes}
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

    def up(self, control_plane: ControlPlane) -> None:
        """Start them, and wait until they have joined all nodes. Raises ComponentError."""
        kubeconfig = control_plane.kubeconfig(Subject(USER))
        in_parallel(lambda name: self._start(name, kubeconfig), self._nodes)
        deadline = time.monotonic() + JOINED_SECONDS
        while absent := self._lacking():
            if fault := next((words for one in self.components if (words := one.fault())), None):
                raise ComponentError(fault)
            if time.monotonic() > deadline:
                first = self._flannelds[absent[0].partition(":")[0]]
                raise ComponentError(
                    f"{first.name} has not made, within {JOINED_SECONDS:g} s, on {absent[0]}; "
                    f"its last words: {first.last_words()}"
                )
            time.sleep(AGAIN_SECONDS)

    def faults(self) -> list[str]:
        """Return, in words, what is no longer there of all that joins the nodes."""
        return [f"the overlay of cluster {self.cluster} lacks, on {words}" for words in self._lacking()]

    def _lacking(self) -> list[str]:
        addressing = self._overlay.addressing
        file, vtep = addressing.subnet_file(self.cluster), addressing.vtep(self.cluster)
        seen = in_parallel(lambda node: look(node, file, vtep), self._nodes.values())
        return lacking(self._overlay, dict(zip(self._nodes, seen, strict=True)))

    def _start(self, name: str, kubeconfig: str) -> None:
        node, directory = self._nodes[name], directory_of(self.cluster)
        node.run(
            ["tee", f"{directory}/net-conf.json"],
            stdin=render_network(self._overlay.addressing.scenario, self.cluster),
        )
        node.run(["tee", f"{directory}/flanneld.conf"], stdin=kubeconfig)
        self._flannelds[name].start()
