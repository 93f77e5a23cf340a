"""A scenario brought to life: nodes, networks, containers and pods, ready for traffic."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from testbed.access.batch import Step, take
from testbed.access.clocks import Clock
from testbed.access.components import Component
from testbed.access.place import InNamespace, Node, Place, PodPlace, in_parallel
from testbed.enforcements.agents import Agents
from testbed.enforcements.enforcement import Enforcement
from testbed.enforcements.registry import of as enforcement_of
from testbed.kubernetes.client import Client
from testbed.orchestrators import Orchestrator
from testbed.overlays.daemons import Joining
from testbed.overlays.pod_network import PodNetwork
from testbed.overlays.registry import of_cluster
from testbed.providers import Provider
from testbed.runtime import containers, names
from testbed.runtime.services import Proxies, Told
from testbed.scenario import Scenario, Transfer, enforcements, links, service_rules
from testbed.scenario.addressing import Addressing, Found
from testbed.supplies import packages

Progress = Callable[[str], None]
# Makes an orchestrator, which needs to know what the nodes have.
Orchestrate = Callable[[Addressing, Enforcement, Provider], Orchestrator]
ENTRIES = "flannel's entries, made by the testbed"


class Testbed:
    """One scenario on one provider's nodes, its pods run by one orchestrator, its promises by an enforcement.

    ``scenario`` is what was asked for, and stays as it is. ``found`` is what nodes that were there before
    turned out to have, once they are up; ``addressing`` goes by both.
    """

    __test__ = False  # not a test case, whatever its name tells pytest

    def __init__(self, addressing: Addressing, provider: Provider, orchestrate: Orchestrate) -> None:
        self.addressing = addressing
        self.scenario: Scenario = addressing.scenario
        self.found = Found()
        self.provider = provider
        self._orchestrate = orchestrate
        self.enforcement = enforcement_of(addressing)
        self.orchestrator: Orchestrator | None = None
        self._joining: Joining | None = None
        self.agents: Agents | None = None
        self._proxies: Proxies | None = None
        self._resolvers: names.Resolvers | None = None
        self.containers: Mapping[str, PodPlace] = {}
        self.networks: Mapping[str, PodPlace] = {}

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The nodes that are up, by name."""
        return self.provider.nodes

    @property
    def facts(self) -> Mapping[str, Any]:
        """What is known of clusters that are not the testbed's own, for the recording."""
        return self.orchestrator.facts if self.orchestrator else {}

    @property
    def overlay(self) -> str:
        """What made the entries between the nodes, for the recording."""
        others = self.orchestrator.overlay if self.orchestrator else None
        own = f"{ENTRIES}; {', '.join(self.programs)} on the nodes" if self.programs else ENTRIES
        return others or own

    @property
    def programs(self) -> Mapping[str, Path]:
        """The programs of packages that pod networks run on nodes, by name."""
        return self._joining.programs if self._joining else {}

    @property
    def plugins(self) -> list[str]:
        """The CNI plugins that attach pods, by name, for the recording."""
        conflist = enforcements.description_of(self.addressing.scenario).conflist or {}
        found = [one for plugin in conflist.get("plugins", ()) for one in (plugin, plugin.get("ipam") or {})]
        return list(dict.fromkeys(str(one["type"]) for one in found if "type" in one))

    @property
    def clients(self) -> Sequence[Client]:
        """What asks the clusters' APIs, where there are any."""
        return self.orchestrator.clients if self.orchestrator else []

    @property
    def pods(self) -> Mapping[str, PodPlace]:
        """The running pods, by name."""
        return self.orchestrator.pods if self.orchestrator else {}

    @property
    def add_s(self) -> Mapping[str, float]:
        """How long each pod's attachment took, in seconds, where that can be seen; after ``down`` too."""
        return self.orchestrator.add_s if self.orchestrator else {}

    @property
    def serving(self) -> Sequence[Component]:
        """The programs that serve the scenario's services, and their names."""
        own = self.orchestrator.serving if self.orchestrator else []
        proxies = self._proxies.components if self._proxies else own
        return [*proxies, *(self._resolvers.components if self._resolvers else [])]

    def up(self, progress: Progress = lambda _: None, without: Collection[str] = ()) -> None:
        """Bring everything up; on failure nothing stays. Raises RuntimeError with what failed and why.

        ``without`` are pods that shall come later, if at all: by ``add``.
        """
        for warning in service_rules.warned(self.scenario):
            progress(warning)
        try:
            progress("nodes and underlay")
            self._learn(self.provider.up())
            orchestrator = self._orchestrate(self.addressing, self.enforcement, self.provider)
            networks = self._make_networks(orchestrator, progress)
            if self.enforcement.description.agent and not orchestrator.brings_containers:
                self.agents = Agents(self.addressing, self.enforcement, self.nodes)
                self.agents.up()
            self._learn(orchestrator.up(progress, without))
            self.orchestrator = orchestrator
            self.containers = orchestrator.containers_from(networks)
            self.networks = {**orchestrator.networks, **networks}
            if self.addressing.services and not orchestrator.serves:
                progress("services")
                self._proxies = Proxies(self.addressing, self.nodes)
                self._proxies.up(self.pods)
            if self.addressing.services and not orchestrator.names:
                self._give_names(progress)
            if links.limited(self.scenario):
                # So that traffic waits for its class at all times: else senders are measured, not guarantees.
                self.provider.settle(list(self.networks.values()))
        except BaseException:
            if self.orchestrator is not None:
                with suppress(RuntimeError):
                    self.orchestrator.down()
            self.provider.down()
            raise

    def down(self) -> None:
        """Take everything down."""
        if self.orchestrator is not None:
            self.orchestrator.down()
        self.provider.down()

    def add(self, pod: str) -> None:
        """Start a pod of the scenario that is not there. Raises RuntimeError with why it was refused."""
        assert self.orchestrator is not None, "the testbed is not up"
        self.orchestrator.add(pod)
        self.networks = {**self.networks, **self.orchestrator.networks}
        if self._proxies:
            self._proxies.tell(self.pods)

    def remove(self, pod: str) -> None:
        """End a pod. Raises RuntimeError."""
        assert self.orchestrator is not None, "the testbed is not up"
        if self._proxies:
            self._proxies.tell({name: place for name, place in self.pods.items() if name != pod})
        self.orchestrator.remove(pod)
        self.networks = {name: place for name, place in self.networks.items() if name != pod}

    def tell_services(self, told: Told) -> None:
        """Let services be as ``told`` from now on; the nodes see to it within a second."""
        assert self._proxies is not None, "no services are up"
        self._proxies.told = told
        self._proxies.tell(self.pods)

    def service_endpoints(self) -> Mapping[tuple[str, str], set[str]]:
        """Return to which addresses services lead by now, by cluster and node."""
        assert self._proxies is not None, "no services are up"
        return self._proxies.endpoints()

    def restart_agents(self, node: str) -> Sequence[str]:
        """Restart what runs on a node for its pods' networks, and return who that was; see Orchestrator."""
        assert self.orchestrator is not None, "the testbed is not up"
        return self.orchestrator.restart_agents(node)

    @contextmanager
    def running(self, without: Collection[str] = ()) -> Iterator[Self]:
        """Have everything up until the end of the block. Raises RuntimeError as ``up`` does."""
        self.up(without=without)
        try:
            yield self
        finally:
            self.down()

    def clocks(self) -> Mapping[str, Clock]:
        """Compare the nodes' clocks with ours; without those that have ours."""
        return self.provider.clocks()

    def check(self) -> list[str]:
        """Return, in words, every way in which networks, pods and shaping are not as they were made."""
        if self.orchestrator is None:
            return ["the testbed is not up"]
        joining = self._joining.faults() if self._joining else []
        joining += self.agents.faults() if self.agents else []
        joining += self._proxies.faults() if self._proxies else []
        joining += self._resolvers.faults() if self._resolvers else []
        devices = (one.component for one in self.provider.devices.values())
        ended = [words for trunk in self.provider.trunks if (words := trunk.fault())]
        ended += [words for server in devices if (words := server.fault())]
        return [*ended, *joining, *self.orchestrator.check(), *self.enforcement.check(self)]

    def place(self, name: str) -> PodPlace:
        """Return the pod or container of this name."""
        return self.pods[name] if name in self.pods else self.containers[name]

    def network(self, name: str) -> Place:
        """Return from where the network of a pod or container is looked at.

        That is its node, where this knows the network: to be led into a pod by Kubernetes takes its time.
        """
        return self.networks[name] if name in self.networks else self.place(name)

    def address_for(self, transfer: Transfer) -> str:
        """Return where the sender of a transfer finds its receiver."""
        if service := self.addressing.service_of(transfer):
            return str(self.addressing.service(service))
        here, there = self.scenario.nodes_of(transfer)
        receiver = self.place(transfer.destination)
        if here != there and receiver.published:
            return receiver.published
        return receiver.address

    def _give_names(self, progress: Progress) -> None:
        """Let pods ask for services by their names, if there is what answers: traffic needs none."""
        try:
            program = packages.find(names.PACKAGE, names.PROGRAM)
        except LookupError as error:
            progress(f"services have no names in pods: {error}")
            return
        self._resolvers = names.Resolvers(self.addressing, self.nodes, program)
        self._resolvers.up()

    def _learn(self, found: Found) -> None:
        """Take into account what nodes turned out to have."""
        if found:
            self.found = self.found.merged(found)
            self.addressing = Addressing(self.found.applied(self.scenario))
            self.enforcement = enforcement_of(self.addressing)

    def _make_networks(self, orchestrator: Orchestrator, progress: Progress) -> dict[str, InNamespace]:
        """Make what joins pods of different nodes, and containers, unless others do; return the latter's."""
        if orchestrator.brings_containers:
            return {}
        progress("container networks" if orchestrator.overlay else "pod and container networks")
        overlays: Mapping[str, PodNetwork] = {}
        if not orchestrator.overlay:
            overlays = {name: of_cluster(self.addressing, name) for name in self.scenario.clusters}
        networks = {name: self._container(name) for name in self.scenario.containers}
        in_parallel(lambda name: self._prepare(name, overlays, networks), self.scenario.nodes)
        ours = {name: one for name, one in overlays.items() if name not in orchestrator.joins}
        self._joining = Joining(ours, self.nodes, packages.find)
        self._joining.up()
        return networks

    def _prepare(
        self, name: str, overlays: Mapping[str, PodNetwork], in_containers: Mapping[str, Place]
    ) -> None:
        """Give one node its pod networks and its container network, and let it forward."""
        addressing = self.addressing
        own = [one for one in overlays.values() if name in one.nodes]
        files = {path: text for one in own for path, text in one.files(name).items()}
        steps = []
        if own:
            steps.append(Step(["ip", "-batch", "-"], "".join(one.links(name) for one in own)))
            steps.append(Step(["bridge", "-batch", "-"], "".join(one.forwarding(name) for one in own)))
        if files:
            steps.append(Step(["mkdir", "-p", *{path.rpartition("/")[0]: None for path in files}]))
        steps += [Step(["tee", path], text) for path, text in files.items()]
        steps.append(Step(["tee", "/proc/sys/net/ipv4/ip_forward"], "1\n"))
        if addressing.containers_on(name):
            steps.append(Step(["ip", "-batch", "-"], containers.render_links(addressing, name)))
            steps.append(Step(["nft", "-f", "-"], containers.render_translation(addressing, name)))
        elif any(name in segment.nodes for segment in addressing.scenario.segments.values()):
            steps.append(Step(["nft", "-f", "-"], containers.render_untracked(addressing)))
        for container in addressing.containers_on(name):
            inside = containers.render_inside(addressing, container)
            steps.append(Step([*in_containers[container].route.command, "ip", "-batch", "-"], inside))
        take(self.nodes[name], steps)

    def _container(self, name: str) -> InNamespace:
        """Return a container's network namespace; from other nodes it is reached at its node's address."""
        node = self.scenario.containers[name].node
        return InNamespace(
            name=name,
            node=self.nodes[node],
            namespace=self.addressing.namespace(name),
            address=str(self.addressing.container(name).ip),
            host_interface=containers.host_interface(self.addressing.containers_on(node).index(name)),
            published=str(self.addressing.address(node)),
        )
