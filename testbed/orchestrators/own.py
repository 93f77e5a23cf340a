"""Pods by Kubernetes itself: a control plane for each cluster, a kubelet for each cluster on each worker."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any

from testbed import resources
from testbed.access.batch import Step, take
from testbed.access.components import Component, ComponentError
from testbed.access.place import CommandError, InNamespace, Node, PodPlace, in_parallel
from testbed.access.remote import RemotePod
from testbed.enforcements.enforcement import Enforcement
from testbed.kubernetes import manifests, proxies
from testbed.kubernetes.addresses import Giver, in_turn, without_block
from testbed.kubernetes.client import Client
from testbed.kubernetes.control_plane import ControlPlane, Subject, directory_of
from testbed.kubernetes.flanneld import Flannel
from testbed.kubernetes.joining import Stations, api_of
from testbed.kubernetes.manifests import Manifest, name_of
from testbed.kubernetes.services import ClusterServices
from testbed.kubernetes.worker import BESIDE, Containerd, Worker, wait_until_detached
from testbed.orchestrators import Orchestrator
from testbed.overlays.daemons import Find, Joining
from testbed.overlays.registry import of_cluster
from testbed.runtime.cni import Attached, attachments
from testbed.runtime.proxies import preparation
from testbed.runtime.services import answer_themselves
from testbed.scenario import services
from testbed.scenario.addressing import Addressing, Found
from testbed.supplies import binaries, images, packages

READY_SECONDS = 300.0


class KubernetesOrchestrator(Orchestrator):
    """Runs pods by real clusters. containerd calls the plugins, and does not say how long that takes."""

    serves = True

    def __init__(self, addressing: Addressing, enforcement: Enforcement, nodes: Mapping[str, Node]) -> None:
        self._addressing, self._enforcement = addressing, enforcement
        self._scenario = addressing.scenario
        self._nodes = nodes
        self._programs = binaries.find()
        self.overlay = f"flanneld {self._programs.flanneld}" if self._programs.flanneld else None
        self.joins = list(clusters(addressing))
        self._control_planes: dict[str, ControlPlane] = {}
        self._givers: dict[str, Giver] = {}  # of the clusters whose nodes differ in size
        self._stations: dict[str, Stations] = {}  # likewise
        self._services: dict[str, ClusterServices] = {}  # of the clusters that have some
        self._workers: dict[tuple[str, str], Worker] = {}  # by cluster and node
        self._overlays: dict[str, Flannel | ByApi] = {}  # those that a flanneld makes, or daemons like it
        self._others: list[Containerd] = []  # on nodes that are no workers
        self._images: list[images.Image] = []
        self._clients: dict[str, Client] = {}
        self.pods: dict[str, PodPlace] = {}
        self.networks: dict[str, InNamespace] = {}

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the APIs say of the nodes' versions, for the recording."""
        return {
            cluster: {
                "nodes": {
                    node["metadata"]["name"]: {"info": node["status"]["nodeInfo"]}
                    for node in client.get("nodes")["items"]
                    if node["status"]["nodeInfo"]["kubeletVersion"]  # a master is a name alone
                }
            }
            for cluster, client in self._clients.items()
        }

    @property
    def clients(self) -> list[Client]:
        """One for each cluster."""
        return list(self._clients.values())

    def up(self, progress: Callable[[str], None], without: Collection[str] = ()) -> Found:
        """Start the clusters, all at once, and in them the pods; see Orchestrator."""
        self._enforcement.prepare()
        self._images = [*images.provide(), *proxies.provide(self._addressing)]
        if self._addressing.proxies:
            resources.build_plugin()
        self._make()
        in_parallel(self._let_have_proxies, dict.fromkeys(pod.node for pod in self._addressing.pods.values()))
        progress(f"control planes and containerds of clusters {', '.join(self._scenario.clusters)}")
        tasks: list[Callable[[], None]] = [
            *(lambda one=one: self._start_control_plane(one) for one in self._control_planes.values()),
            *(lambda one=one: one.prepare(self._images) for one in self._workers.values()),
        ]
        in_parallel(lambda task: task(), tasks)
        progress(f"kubelets, and {self.overlay} for the overlays" if self.overlay else "kubelets")
        tasks = [
            *(lambda one=one: one.join(self._control_planes[one.cluster]) for one in self._workers.values()),
            *(lambda one=one: one.up(self._control_planes[one.cluster]) for one in self._overlays.values()),
            *(lambda one=one: one.up(self._control_planes[one.cluster]) for one in self._stations.values()),
            *(lambda one=one: one.up(self._control_planes[one.cluster]) for one in self._services.values()),
        ]
        in_parallel(lambda task: task(), tasks)
        progress("pods")
        names = [name for name in self._addressing.pods if name not in without]
        in_parallel(lambda cluster: self._start_pods(cluster, names), self._scenario.clusters)
        self._find_pods(names)
        if self._services:
            progress("services")
            self._answer_themselves()
            in_parallel(lambda one: one.wait(self._addresses), self._services.values())
        return Found()

    def _make(self) -> None:
        """Make each cluster's parts, none of them started."""
        programs = self._programs
        serving = services.clusters(self._scenario)
        for name, cluster in self._scenario.clusters.items():
            control_plane = ControlPlane(self._addressing, name, self._nodes[cluster.master], programs)
            self._control_planes[name] = control_plane
            self._clients[name] = Client(
                name, control_plane.master, str(programs.path("kubectl")), control_plane.admin
            )
            if cluster.pod_cidrs is not None:
                self._givers[name] = Giver(self._addressing, control_plane, self._clients[name])
                by_others = self.overlay is not None
                self._stations[name] = Stations(
                    self._addressing, self._enforcement, name, self._nodes, packages.find, by_others
                )
            if name in serving:
                self._services[name] = ClusterServices(
                    self._addressing, name, self._nodes, self._clients[name], programs.version
                )
            for worker in cluster.workers:
                self._workers[name, worker] = Worker(
                    self._addressing, self._enforcement, name, self._nodes[worker], programs
                )
            if self.overlay:
                program = programs.path(binaries.FLANNELD)
                self._overlays[name] = Flannel(self._addressing, name, self._nodes, program)
            elif name in self.joins:
                self._overlays[name] = ByApi(self._addressing, name, self._nodes, packages.find)

    def add(self, name: str) -> None:
        """Start a pod by the API, and take it away if it is refused; see Orchestrator."""
        client = self._clients[self._addressing.pods[name].cluster]
        client.start_pod(self._manifest(name), READY_SECONDS, self._fault)
        self._find_pods([*self.pods, name])
        self._answer_themselves()

    def remove(self, name: str) -> None:
        """Delete a pod by the API, and wait until it is detached; see Orchestrator."""
        pod = self._addressing.pods[name]
        client, known = self._clients[pod.cluster], self._attachments().get(name)
        client.delete_pod(name_of(name), wait=False)
        if known and wait_until_detached(self._nodes[pod.node], pod.cluster, known.container):
            client.forget_pod(name_of(name))
        else:
            client.delete_pod(name_of(name))
        self.pods = {other: place for other, place in self.pods.items() if other != name}
        self.networks = {other: place for other, place in self.networks.items() if other != name}

    def restart_agents(self, node: str) -> list[str]:
        """Restart containerds, kubelets, what joins the nodes, and proxies; see Orchestrator."""
        workers = [worker for (_, name), worker in self._workers.items() if name == node]
        others = [one for one in (*self._joining, *self.serving) if one.place.name == node]
        for worker in workers:
            worker.restart()
        for one in others:
            one.restart()
        return [one.name for one in (*(own for worker in workers for own in worker.components), *others)]

    def check(self) -> list[str]:
        """Let the plugin check every pod, as no container runtime does; see Orchestrator."""
        faults = [fault for fault in in_parallel(lambda one: one.fault(), self.components) if fault]
        faults += [fault for one in self._overlays.values() for fault in one.faults()]
        served = in_parallel(lambda one: one.faults(self._addresses), self._services.values())
        faults += [fault for each in served for fault in each]
        attached = self._attachments()
        for name in self.pods:
            if name not in attached:
                faults.append(f"pod {name}: nothing is known of its attachment")
        faults += [
            fault for fault in in_parallel(lambda item: self._check(*item), list(attached.items())) if fault
        ]
        return list(dict.fromkeys(faults))

    def down(self) -> None:
        """Remove every pod through the API, so that the runtime calls the plugin for each."""
        with suppress(CommandError):
            in_parallel(lambda client: client.delete_pods(), self.clients)
            in_parallel(lambda key: wait_until_detached(self._nodes[key[1]], key[0]), list(self._workers))
        self.pods = {}
        self.networks = {}

    def containers_from(self, containers: Mapping[str, InNamespace]) -> dict[str, RemotePod]:
        """Run a container in each network: by a worker's first containerd, but not by Kubernetes."""
        traffic = [image for image in self._images if image.name == images.TRAFFIC]
        nodes = dict.fromkeys(network.node.name for network in containers.values())
        hosts = dict(zip(nodes, in_parallel(self._containerd_of, nodes), strict=True))
        in_parallel(lambda host: host.import_images(traffic, BESIDE), hosts.values())
        places = in_parallel(
            lambda network: hosts[network.node.name].run_container(images.TRAFFIC, network),
            containers.values(),
        )
        return {place.name: place for place in places}

    def _containerd_of(self, node: str) -> Containerd:
        """Return a containerd of a node; one that has none gets one of its own."""
        for (_, name), worker in self._workers.items():
            if name == node:
                return worker.containerd
        own = Containerd(self._nodes[node], directory_of("containers"), "the containers")
        own.up(None, [], BESIDE)
        self._others.append(own)
        return own

    def _start_control_plane(self, control_plane: ControlPlane) -> None:
        control_plane.begin()
        control_plane.finish()
        cluster = control_plane.cluster
        nodes = [
            manifests.node(self._addressing, self._enforcement, cluster, worker)
            for worker in self._scenario.clusters[cluster].workers
        ]
        for_overlay = self._overlays[cluster].manifests if cluster in self._overlays else []
        for_services = self._services[cluster].manifests if cluster in self._services else []
        if cluster in self._givers:
            self._give_blocks(cluster, [manifests.master(self._addressing, cluster), *nodes])
            nodes = []  # they are there
            for_overlay = [*for_overlay, *self._stations[cluster].manifests]
        self._clients[cluster].apply([manifests.account(), *nodes, *for_overlay, *for_services])

    def _give_blocks(self, cluster: str, nodes: Iterable[Manifest]) -> None:
        """Let nodes come to the API without blocks, one after another, and be given the scenario's."""
        giver, members = self._givers[cluster], self._addressing.members(cluster)
        giver.up()
        made = dict(zip(self._scenario.clusters[cluster].nodes, nodes, strict=True))
        for names in in_turn(list(made)):
            self._clients[cluster].apply([without_block(made[name]) for name in names])
            giver.await_blocks([name for name in names if name in members], self._addressing)

    def _let_have_proxies(self, node: str) -> None:
        """Let a node have proxy pods, if it shall."""
        take(self._nodes[node], preparation(self._addressing, node, self._enforcement.segment_plugin))

    def _manifest(self, name: str) -> Manifest:
        if name in self._addressing.proxies:
            return proxies.pod(self._addressing, self._enforcement, name)
        return manifests.pod(self._scenario, self._enforcement, name)

    def _start_pods(self, cluster: str, names: Iterable[str]) -> None:
        pods = [name for name in names if self._addressing.pods[name].cluster == cluster]
        if not pods:
            return
        client = self._clients[cluster]
        members = self._addressing.members(cluster)
        for worker in filter(members.__contains__, self._scenario.clusters[cluster].workers):
            version = self._programs.version
            if published := manifests.publication(self._enforcement, cluster, worker, version):
                client.publish(name_of(worker), published, READY_SECONDS)
        client.apply([self._manifest(name) for name in pods])
        client.wait_until_ready([name_of(name) for name in pods], READY_SECONDS, self._fault)

    @property
    def components(self) -> list[Component]:
        """Everything that must be running."""
        return [
            *(one for plane in self._control_planes.values() for one in plane.components.values()),
            *(one.component for one in self._givers.values()),
            *(one for worker in self._workers.values() for one in worker.components),
            *self._joining,
            *self.serving,
            *(one.component for one in self._others if one.component is not None),
        ]

    @property
    def _joining(self) -> list[Component]:
        """What joins the nodes."""
        joined = [*self._overlays.values(), *self._stations.values()]
        return [one for overlay in joined for one in overlay.components]

    @property
    def serving(self) -> list[Component]:
        """Proxies, and who publishes hints; see Orchestrator."""
        return [one for each in self._services.values() for one in each.components]

    @property
    def _addresses(self) -> dict[str, str]:
        return {name: place.address for name, place in self.pods.items()}

    def _answer_themselves(self) -> None:
        answer_themselves(self._scenario, self._nodes, self.networks)

    def _fault(self) -> str | None:
        return next((text for one in self.components if (text := one.fault())), None)

    def _attachments(self) -> dict[str, Attached]:
        """Return what is known of each pod's attachment, by its name in the scenario."""
        by_name = {(pod.cluster, name_of(name)): name for name, pod in self._addressing.pods.items()}
        found: dict[str, Attached] = {}
        for (cluster, _), worker in self._workers.items():
            for one in attachments(worker.cell):
                name = by_name.get((cluster, one.arguments.get("K8S_POD_NAME", "")))
                if name is not None:
                    found[name] = one
        return found

    def _find_pods(self, names: Iterable[str]) -> None:
        for name, one in sorted(self._attachments().items()):
            client = self._clients[self._addressing.pods[name].cluster]
            network = InNamespace(name, one.node, one.namespace, one.address, one.host_interface)
            self.networks[name] = self.pods[name] = network
            if name not in self._addressing.proxies:  # in these there is no program to be started
                self.pods[name] = RemotePod(
                    name, client.place, client.execution(name_of(name)), one.address, one.host_interface
                )
        if missing := set(names) - self.pods.keys():
            raise ComponentError(f"pods without a known attachment: {', '.join(sorted(missing))}")

    def _check(self, name: str, one: Attached) -> str | None:
        pod = self._addressing.pods[name]
        network = proxies.network_list(self._enforcement, pod.cluster, pod.node)
        directories = (*map(str, proxies.plugins(self._enforcement)), *resources.REFERENCE_PLUGINS)
        complaint = one.complaint(network, directories)
        return complaint and f"pod {name}: {complaint}"


def clusters(addressing: Addressing) -> Iterable[str]:
    """Return the clusters whose daemons tell each other what they know by their own cluster's API."""
    names = addressing.scenario.clusters
    return [name for name in names if of_cluster(addressing, name).rights(name)]


class ByApi:
    """One cluster's network, joined by daemons that ask the cluster's API."""

    def __init__(self, addressing: Addressing, cluster: str, nodes: Mapping[str, Node], find: Find) -> None:
        self._addressing, self.cluster = addressing, cluster
        # Who waits for a block has daemons, too, that wait with it; see testbed.kubernetes.joining.
        self._nodes = {name: nodes[name] for name in addressing.scenario.clusters[cluster].nodes}
        self._api = api_of(addressing, cluster)
        self._network = of_cluster(addressing, cluster).by_api(self._api)
        self._joining = Joining({cluster: self._network}, nodes, find)

    @property
    def components(self) -> list[Component]:
        """What must be running."""
        return self._joining.components

    @property
    def manifests(self) -> list[Manifest]:
        """What the API must be told first: who may do what, and the master as a node with a subnet."""
        rights = {name: self._network.rights(name_of(name)) for name in self._nodes}
        allowed = [one for name, rules in rights.items() for one in manifests.allowed(_user(name), rules)]
        return [*allowed, manifests.master(self._addressing, self.cluster)]

    def up(self, control_plane: ControlPlane) -> None:
        """Start the daemons, and wait until they have joined all nodes. Raises ComponentError."""
        in_parallel(lambda name: self._identify(name, control_plane), self._nodes)
        self._joining.up()

    def faults(self) -> list[str]:
        """Return, in words, what has ended, and what is no longer there of all that joins the nodes."""
        return self._joining.faults()

    def _identify(self, name: str, control_plane: ControlPlane) -> None:
        """Let a node's daemons be known to the API, and the API to them."""
        take(
            self._nodes[name],
            [
                Step(["mkdir", "-p", directory_of(self.cluster)]),
                Step(["tee", self._api.identity], control_plane.authority.identify(Subject(_user(name)))),
                Step(["tee", self._api.authority], control_plane.authority.certificate),
            ],
        )


def _user(node: str) -> str:
    return f"overlay:{name_of(node)}"
