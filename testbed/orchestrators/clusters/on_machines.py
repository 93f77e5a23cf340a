"""A scenario on machines that were provisioned: nodes by SSH, pods by the clusters that are there.

Pods are made through the API, as in any cluster that exists; but the nodes are entered by SSH, so no pod has
to help, and the containers are on the machines' own network, which is made for the run as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

from testbed.access import scratch
from testbed.access.local import Local
from testbed.access.place import CommandError, InNamespace, Node, Place, Within, in_parallel
from testbed.access.remote import RemotePod
from testbed.clusters import kubeconfigs
from testbed.clusters.kubeconfigs import Outside
from testbed.clusters.namespaces import Namespaces, lifetime
from testbed.clusters.survey import ask, survey
from testbed.enforcements.enforcement import Enforcement
from testbed.kubernetes.control_plane import ADMIN_KUBECONFIG, IN_CELL
from testbed.kubernetes.worker import KUBELETS, way_into
from testbed.orchestrators.clusters.pods import Pods
from testbed.scenario import ScenarioError
from testbed.scenario.addressing import Addressing
from testbed.scenario.found import Found
from testbed.supplies.images import TRAFFIC

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


class PodsOnMachines:
    """Runs a scenario's pods by the clusters of its machines; see testbed.orchestrators.Orchestrator."""

    overlay: str | None = "flannel's, as the machines were provisioned"
    brings_containers = False
    joins = ()

    def __init__(self, addressing: Addressing, enforcement: Enforcement, nodes: Mapping[str, Node]) -> None:
        # To the clusters the containers are nothing but other traffic.
        scenario = addressing.scenario.model_copy(update={"containers": {}})
        self._scenario = scenario
        self._addressing, self._enforcement = Addressing(scenario), enforcement
        self.seconds = lifetime(scenario)
        self.entered: Mapping[tuple[str, str], Node] = {
            (cluster, name): CellOnMachine(name, node, cluster)
            for name, node in nodes.items()
            for cluster in addressing.clusters_of(name)
        }
        self._kubeconfigs = ExitStack()
        self._namespaces: Namespaces | None = None
        self._pods: Pods | None = None

    add_s: Mapping[str, float] = {}  # the clusters' own runtimes call the plugins

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the APIs say of the clusters, for the recording."""
        return self._pods.facts if self._pods else {}

    @property
    def pods(self) -> Mapping[str, RemotePod]:
        """The running pods, by name."""
        return self._pods.pods if self._pods else {}

    @property
    def networks(self) -> dict[str, InNamespace]:
        """The pods' networks, entered by SSH, with the rights of the machine's root."""
        return self._pods.networks if self._pods else {}

    @property
    def clients(self) -> list[Outside]:
        """One for each cluster."""
        return list(self._pods.clients) if self._pods else []

    def up(self, progress: Callable[[str], None], without: Collection[str] = ()) -> Found:
        """Look at the clusters, and start the pods; on failure none of them stays.

        Raises ScenarioError and LookupError for all that speaks against a run there, RuntimeError for pods.
        """
        try:
            return self._up(progress, without)
        except BaseException:
            with suppress(RuntimeError):
                self.down()
            raise

    def _up(self, progress: Callable[[str], None], without: Collection[str]) -> Found:
        progress(f"the APIs of clusters {', '.join(self._scenario.clusters)}")
        names = list(self._scenario.clusters)
        asking = in_parallel(self._client, names)
        clients = dict(zip(names, asking, strict=True))
        answers = dict(zip(names, in_parallel(ask, clients.values()), strict=True))
        ground, faults = survey(self._scenario, self._enforcement, answers)
        if faults:
            raise ScenarioError(f"scenario {self._scenario.name}", faults)
        self._namespaces = Namespaces(clients.values(), self.seconds)
        self._namespaces.claim()
        self._pods = Pods(self._addressing, self._enforcement, self, ground, clients, TRAFFIC)
        return self._pods.up(progress, without)

    def add(self, name: str) -> None:
        """Start a pod; see Orchestrator."""
        assert self._pods is not None, "the pods are not up"
        self._pods.add(name)

    def remove(self, name: str) -> None:
        """Delete a pod; see Orchestrator."""
        assert self._pods is not None, "the pods are not up"
        self._pods.remove(name)

    def way_into(self, name: str, client: Outside, pod: Mapping[str, Any]) -> tuple[Place, Sequence[str]]:
        """Return the way by SSH and containerd, on which nothing is lost when an API is late; see Ways."""
        (status,) = pod["status"]["containerStatuses"]
        cell = self.entered[client.cluster, self._scenario.pods[name].node]
        return cell, way_into(KUBELETS, status["containerID"].rpartition("/")[2])

    def restart_agents(self, node: str) -> list[str]:
        """Leave a node as it is: what runs there is other people's; see Orchestrator."""
        return []

    def containers_from(self, containers: Mapping[str, InNamespace]) -> Mapping[str, InNamespace]:
        """Leave the containers as they are: network namespaces beside Kubernetes."""
        return containers

    def check(self) -> list[str]:
        """Return every way in which a pod is not as it was made; see Orchestrator."""
        return self._pods.check() if self._pods else ["the pods are not up"]

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
