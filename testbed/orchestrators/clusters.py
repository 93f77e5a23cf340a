"""Pods by clusters that exist already; a scenario's containers are pods in their nodes' networks."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from testbed import resources
from testbed.access import scratch
from testbed.access.local import Local
from testbed.access.place import CommandError, InNamespace, Node, Place, PodPlace, Within, in_parallel
from testbed.access.remote import RemotePod
from testbed.clusters import kubeconfigs, namespaces, services
from testbed.clusters.kubeconfigs import NAMESPACE, Outside
from testbed.clusters.namespaces import READY_SECONDS, Namespaces, Ways, lifetime
from testbed.clusters.survey import Ground, ask, facts, survey
from testbed.enforcements.enforcement import Enforcement
from testbed.kubernetes.control_plane import ADMIN_KUBECONFIG, IN_CELL
from testbed.kubernetes.manifests import Manifest, name_of
from testbed.kubernetes.worker import KUBELETS, way_into
from testbed.orchestrators import Orchestrator
from testbed.runtime.cni import Attached, NetworkList, attachments
from testbed.scenario import ScenarioError
from testbed.scenario.addressing import Addressing, Found
from testbed.supplies.images import TRAFFIC


class Pods(Orchestrator):
    """Runs a scenario's pods and containers; plugins are called by the clusters' own runtimes."""

    overlay: str | None = "the clusters' own"
    brings_containers = True
    serves = names = True  # or rather its clusters do

    def __init__(
        self,
        addressing: Addressing,
        enforcement: Enforcement,
        nodes: Ways,
        ground: Ground,
        clients: Mapping[str, Outside],
        image: str,
    ) -> None:
        self._addressing, self._enforcement = addressing, enforcement
        self._scenario = addressing.scenario
        self._nodes = nodes
        self._ground = ground
        self._clients = clients
        self._image = image
        self.attached: dict[str, Attached] = {}
        self.pods: dict[str, RemotePod] = {}
        self.networks: dict[str, InNamespace] = {}  # of pods of which their nodes know the attachment
        self._containers: dict[str, RemotePod] = {}
        self._mtu = 0  # of the pods, bytes

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the APIs say of the clusters, for the recording."""
        return facts(self._scenario, self._ground)

    @property
    def clients(self) -> Sequence[Outside]:
        """One for each cluster."""
        return list(self._clients.values())

    def up(self, progress: Callable[[str], None], without: Collection[str] = ()) -> Found:
        """Start pods and containers, all at once. Raises PodError with what Kubernetes says."""
        progress("pods")
        names = [name for name in self._scenario.pods if name not in without]
        in_parallel(lambda cluster: self._start(cluster, names), self._clients)
        self._find(names)
        if self._scenario.services:
            progress("services")
            known = {name: place.address for name, place in self.pods.items()}
            serve = partial(services.serve, self._addressing, pods=known, seconds=READY_SECONDS)
            in_parallel(serve, self._clients.values())
        for name, container in self._scenario.containers.items():
            place = self._place(name, self._ground.machine(container.node)[0])
            self._containers[name] = replace(place, interface=self._addressing.uplink(container.node))
        self._mtu = max(in_parallel(_mtu, self.pods.values()))
        overhead = max(self._addressing.overhead(cluster) for cluster in self._scenario.clusters)
        return Found(mtu=self._mtu + overhead)

    def add(self, name: str) -> None:
        """Start a pod, and take it away if it is refused; see Orchestrator."""
        cluster = self._scenario.pods[name].cluster
        self._clients[cluster].start_pod(self._manifest(name, cluster), READY_SECONDS)
        self._find([*self.pods, name])

    def remove(self, name: str) -> None:
        """Delete a pod, and wait for its end; see Orchestrator."""
        self._clients[self._scenario.pods[name].cluster].delete_pod(name_of(name))
        self.pods.pop(name)
        self.attached.pop(name, None)
        self.networks.pop(name, None)

    def containers_from(self, containers: Mapping[str, InNamespace]) -> Mapping[str, PodPlace]:
        """Return the containers; they have come with the pods."""
        return self._containers

    def check(self) -> list[str]:
        """Return every way in which a pod is not as it was made; see Orchestrator."""
        faults = [fault for client in self._clients.values() for fault in self._unwell(client)]
        for name, has in zip(self.pods, in_parallel(_mtu, self.pods.values()), strict=True):
            if has != self._mtu:
                faults.append(f"pod {name}: its MTU is {has} bytes, where another's is {self._mtu}")
        if self._enforcement.installed:
            checked = in_parallel(self._check, self.pods)
            faults += [fault for fault in checked if fault]
        return faults

    def down(self) -> None:
        """Leave the pods to the end of their namespace."""
        self.pods, self._containers = {}, {}

    def _start(self, cluster: str, names: Collection[str]) -> None:
        client, scenario, seconds = self._clients[cluster], self._scenario, self._nodes.seconds
        own = [name for name in names if scenario.pods[name].cluster == cluster]
        made = [self._manifest(name, cluster) for name in own]
        for name, container in scenario.containers.items():
            of, machine = self._ground.machine(container.node)
            if of == cluster:
                made.append(namespaces.container_manifest(name, machine, self._image, seconds))
        if made:
            client.apply(made)
            client.wait_until_ready([one["metadata"]["name"] for one in made], READY_SECONDS)

    def _manifest(self, name: str, cluster: str) -> Manifest:
        machine = self._ground.machines[cluster, self._scenario.pods[name].node]
        seconds = self._nodes.seconds
        return namespaces.pod_manifest(self._scenario, self._enforcement, name, machine, self._image, seconds)

    def _find(self, names: Collection[str]) -> None:
        """Learn how the pods that run are attached and reached."""
        made = [pod for client in self._clients.values() for pod in client.get("pods")["items"]]
        uids = {pod["metadata"]["uid"] for pod in made}
        self.attached = self._attachments(uids)
        self.pods = {name: self._place(name, self._scenario.pods[name].cluster) for name in names}
        self.networks = {
            name: InNamespace(name, one.node, one.namespace, one.address, one.host_interface)
            for name, one in self.attached.items()
        }

    def _attachments(self, uids: set[str]) -> dict[str, Attached]:
        """Return what the nodes know of our pods' attachments, by their names in the scenario."""
        names = {(pod.cluster, name_of(name)): name for name, pod in self._scenario.pods.items()}
        found = {}
        for (cluster, _), node in self._nodes.entered.items():
            for one in attachments(node):
                if one.arguments.get("K8S_POD_NAMESPACE") != NAMESPACE:
                    continue
                name = names.get((cluster, one.arguments.get("K8S_POD_NAME", "")))
                if name is not None and one.arguments.get("K8S_POD_UID") in {*uids, None}:
                    found[name] = one
        return found

    def _place(self, name: str, cluster: str) -> RemotePod:
        client = self._clients[cluster]
        pod = client.get("pod", name_of(name))
        origin, way = self._nodes.way_into(name, client, pod)
        # A pod in its node's network has no end there that would show what it alone is sent.
        host_interface = self.attached[name].host_interface if name in self.attached else ""
        return RemotePod(name, origin, way, pod["status"]["podIP"], host_interface)

    def _unwell(self, client: Outside) -> Iterator[str]:
        for pod in client.get("pods")["items"]:
            name, status = pod["metadata"]["name"], pod["status"]
            restarts = sum(one["restartCount"] for one in status.get("containerStatuses", []))
            if status["phase"] != "Running" or restarts:
                yield f"pod {name} of cluster {client.cluster}: {status['phase']}, {restarts} restarts"

    def _check(self, name: str) -> str | None:
        """Let the plugin check a pod, with the configuration that it was made with."""
        pod = self._scenario.pods[name]
        one = self.attached.get(name)
        if one is None:
            return f"pod {name}: its node's runtime keeps nothing of its attachment in /var/lib/cni"
        network = _configuration(one.cached)
        entries = [entry for entry in network["plugins"] if entry["type"] == "concorde"]
        if not entries:
            return f"pod {name}: it was attached by network {network['name']}, which is without Concorde"
        directories = (self._ground.directories[pod.cluster], *resources.REFERENCE_PLUGINS)
        listed = NetworkList(network["name"], entries, network["cniVersion"])
        complaint = one.complaint(listed, directories)
        return complaint and f"pod {name}: {complaint}"


def _configuration(cached: Mapping[str, Any]) -> dict[str, Any]:
    """Return the network configuration list of an attachment, which libcni keeps as bytes."""
    found: dict[str, Any] = json.loads(base64.b64decode(cached["config"]))
    return found


def _mtu(pod: Place) -> int:
    return int(pod.run(["cat", "/sys/class/net/eth0/mtu"]).stdout)


PROVISION = "./invokew provision, with the same provider and scenario, makes it"


@dataclass(frozen=True)
class CellOnMachine(Within):
    """A cluster's part of a machine, as its containerd and kubelet see it."""

    cluster: str
    cgroup: str = ""  # nothing is made there

    @property
    def entrance(self) -> list[str]:
        """How commands get from the machine into the cell."""
        return [IN_CELL, self.cluster]


class PodsOnMachines(Pods):
    """Runs a scenario's pods by the clusters of its machines.

    Pods are made through the API, as in any cluster that exists; but the nodes are entered by SSH, so no pod
    has to help, and the containers are on the machines' own network, which is made for the run as ever.
    """

    overlay: str | None = "flannel's, as the machines were provisioned"
    brings_containers = False

    def __init__(self, addressing: Addressing, enforcement: Enforcement, nodes: Mapping[str, Node]) -> None:
        # To the clusters the containers are nothing but other traffic.
        scenario = addressing.scenario.model_copy(update={"containers": {}})
        super().__init__(Addressing(scenario), enforcement, self, Ground({}, {}, {}), {}, TRAFFIC)
        self.seconds = lifetime(scenario)
        self.entered: Mapping[tuple[str, str], Node] = {
            (cluster, name): CellOnMachine(name, node, cluster)
            for name, node in nodes.items()
            for cluster in addressing.clusters_of(name)
        }
        self._kubeconfigs = ExitStack()
        self._namespaces: Namespaces | None = None

    def up(self, progress: Callable[[str], None], without: Collection[str] = ()) -> Found:
        """Look at the clusters, and start the pods; on failure none of them stays.

        Raises ScenarioError and LookupError for all that speaks against a run there, RuntimeError for pods.
        """
        try:
            progress(f"the APIs of clusters {', '.join(self._scenario.clusters)}")
            self._survey()
            return super().up(progress, without)
        except BaseException:
            with suppress(RuntimeError):
                self.down()
            raise

    def _survey(self) -> None:
        """Learn where pods will run, and claim the clusters' namespaces."""
        names = list(self._scenario.clusters)
        clients = dict(zip(names, in_parallel(self._client, names), strict=True))
        answers = dict(zip(names, in_parallel(ask, clients.values()), strict=True))
        self._ground, faults = survey(self._scenario, self._enforcement, answers)
        if faults:
            raise ScenarioError(f"scenario {self._scenario.name}", faults)
        self._clients = clients
        self._namespaces = Namespaces(clients.values(), self.seconds)
        self._namespaces.claim()

    def way_into(self, name: str, client: Outside, pod: Mapping[str, Any]) -> tuple[Place, Sequence[str]]:
        """Return the way by SSH and containerd, on which nothing is lost when an API is late; see Ways."""
        (status,) = pod["status"]["containerStatuses"]
        cell = self.entered[client.cluster, self._scenario.pods[name].node]
        return cell, way_into(KUBELETS, status["containerID"].rpartition("/")[2])

    def containers_from(self, containers: Mapping[str, InNamespace]) -> Mapping[str, PodPlace]:
        """Leave the containers as they are: network namespaces beside Kubernetes."""
        return containers

    def down(self) -> None:
        """Remove all pods, with their namespaces."""
        if self._namespaces:
            self._namespaces.remove()
        self._kubeconfigs.close()

    def _client(self, cluster: str) -> Outside:
        """Return what asks a cluster's API from here, as its administrator. Raises LookupError."""
        master = self._scenario.clusters[cluster].master
        try:
            text = self.entered[cluster, master].run(["cat", ADMIN_KUBECONFIG]).stdout
        except CommandError as error:
            raise LookupError(
                f"{master} is not a master of cluster {cluster!r} ({error}): {PROVISION}"
            ) from None
        file = self._kubeconfigs.enter_context(scratch.file())
        file.write_text(text, encoding="utf-8")
        return Outside(cluster, Local(), kubeconfigs.kubectl(), str(file))
